# dropout_at: what the draws of rng_at keep, rounded to the type that is written; zero else, also in the place of an inf. PSUM is read as SBUF is, a tile at a time. The opposite of
# less is greater_equal, which keeps the others.
.target "trn2"
.input s ui32[1,4]
.input x f32[1,8]
.output a f32[1,8]
.output b bf16[1,8]
.output c f32[1,8]
.sbuf ss ui32[1,4] at 0:0
.sbuf sx f32[1,8] at 0:64
.sbuf sa f32[1,8] at 0:128
.sbuf sb bf16[1,8] at 0:192
.sbuf sc f32[1,8] at 0:256
.sync auto
dma ss, s
dma sx, x
vector: tensor_copy dst=psum[0:0] dtype=f32 d1=1 src=sbuf[0:64] stype=f32 s1=1 n0=1 n1=8
vector: dropout_at dst=sbuf[0:128] dtype=f32 d1=1 src=sbuf[0:64] stype=f32 s1=1 src1=sbuf[0:0] ttype=ui32 op0=less value=8388608 imm=5 t1=3 n0=1 n1=8
vector: dropout_at dst=sbuf[0:192] dtype=bf16 d1=4 d2=1 src=psum[0:0] stype=f32 s1=4 s2=1 src1=sbuf[0:0] ttype=ui32 op0=greater_equal value=8388608 imm=5 t1=12 t2=3 n0=1 n1=2 n2=4
vector: dropout_at dst=sbuf[0:64] dtype=f32 d1=1 src=sbuf[0:64] stype=f32 s1=1 src1=sbuf[0:0] ttype=ui32 op0=less value=8388608 imm=5 t1=3 n0=1 n1=8
vector: tensor_copy dst=sbuf[0:256] dtype=f32 d1=1 src=sbuf[0:64] stype=f32 s1=1 n0=1 n1=8
dma a, sa
dma b, sb
dma c, sc
# init s 1 2 3 4
# init x 1.5 inf 2.25 -3 nan 4 5 -inf
# expect a 1.5 0 2.25 0 nan 0 0 -inf
# expect b 0 inf 0 -3 0 4 5 0
# expect c 1.5 0 2.25 0 nan 0 0 -inf
