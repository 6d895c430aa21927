# rng, rand2, dropout, seeds and states: one state gives one sequence, numbers lie where they should.
.target "trn3"
.input x f32[1,64]
.input s ui32[1,1]
.output d f32[1,64]
.output g ui32[1,8]
.output f f32[1,1]
.output h f32[1,2]
.sbuf sx f32[1,64] at 0:0
.sbuf ss ui32[1,1] at 0:512
.sbuf sd f32[1,64] at 0:5120
.sbuf sg ui32[1,8] at 0:4096
.sbuf sf f32[1,1] at 0:7680
.sbuf sh f32[1,2] at 0:8192
.sbuf r f32[1,256] at 0:6144
.sync auto
dma sx, x
dma ss, s
set_rng_seed src=sbuf[0:512] stype=ui32 s1=1 n0=1 n1=1
vector: rand_get_state dst=sbuf[0:1024] dtype=ui32 d1=1 n0=1 n1=24
rng dst=sbuf[0:2048] dtype=ui32 d1=1 n0=1 n1=8
vector: rand_set_state src=sbuf[0:1024] stype=ui32 s1=1 n0=1 n1=24
rng dst=sbuf[0:3072] dtype=ui32 d1=1 n0=1 n1=8
tensor_tensor dst=sbuf[0:4096] dtype=ui32 d1=1 src=sbuf[0:2048] stype=ui32 s1=1 src1=sbuf[0:3072] ttype=ui32 t1=1 op0=bitwise_xor n0=1 n1=8
dropout dst=sbuf[0:5120] dtype=f32 d1=1 src=sbuf[0:0] stype=f32 s1=1 a=1.0 n0=1 n1=32
dropout dst=sbuf[0:5248] dtype=f32 d1=1 src=sbuf[0:128] stype=f32 s1=1 a=0.0 n0=1 n1=32
rand2 r a=3.0 b=4.0
tensor_reduce sf, r op0=add
tensor_scalar sf, sf op0=multiply a=0.00390625 op1=add b=-3.5
tensor_scalar sf, sf op0=multiply a=sf op1=less b=0.01
tensor_reduce sh[:, 0:1], r op0=minimum
tensor_reduce sh[:, 1:2], r op0=maximum
tensor_scalar sh[:, 0], sh[:, 0] op0=greater_equal a=3.0
tensor_scalar sh[:, 1], sh[:, 1] op0=less_equal a=4.0
dma d, sd
dma g, sg
dma f, sf
dma h, sh
# init x 5
# init s 77
# expect d 0*32 5*32
# expect g 0
# expect f 1
# expect h 1 1
