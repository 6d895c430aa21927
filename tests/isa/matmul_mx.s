# quantize_mx, ldweights_mx, matmul_mx: blocks of 8 partitions by 4 with a scale of two, and their product.
.target "trn3"
.input w bf16[32,8]
.input x bf16[32,4]
.output y f32[2,1]
.output d f32[32,8]
.output g f32[32,2]
.sbuf sw bf16[32,8] at 0:0
.sbuf sx bf16[32,4] at 0:512
.sbuf sy f32[2,1] at 0:1024
.sbuf sd f32[32,8] at 0:2048
.sbuf sg f32[32,2] at 0:3072
.psum p f32[2,1] at 0:0
.sbuf qw f8E4M3FN[32,8] at 0:4096
.sbuf cw ui8[4,2] at 0:4608
.sbuf qx f8E4M3FN[32,4] at 0:5120
.sbuf cx ui8[4,1] at 0:5632
.sync auto
dma sw, w
dma sx, x
vector: memset sg imm=0
quantize_mx dst=sbuf[0:4096] dtype=f8E4M3FN d1=1 src=sbuf[0:0] stype=bf16 s1=1 res=sbuf[0:4608] n0=32 n1=8
quantize_mx dst=sbuf[0:5120] dtype=f8E4M3FN d1=1 src=sbuf[0:512] stype=bf16 s1=1 res=sbuf[0:5632] n0=32 n1=4
tensor_copy sd, qw
vector: tensor_copy sg[0:4, :], cw
ldweights_mx src=sbuf[0:4096] stype=f8E4M3FN src1=sbuf[0:4608] n0=32 n1=2 s1=1
matmul_mx dst=psum[0:0] src=sbuf[0:5120] stype=f8E4M3FN src1=sbuf[0:5632] n0=32 n1=1 n2=2 d1=1 s1=1
tensor_copy sy, p
dma y, sy
dma d, sd
dma g, sg
# init w 1 1 1 1 2 2 2 2
# init w 1 1 1 1 2 2 2 2 1 1 1 1 2 2 2 2 1 1 1 1 2 2 2 2 1 1 1 1 2 2 2 2 1 1 1 1 2 2 2 2 1 1 1 1 2 2 2 2 1 1 1 1 2 2 2 2
# init w 0
# init x 0.5
# expect y 16 32
# expect d 128*64 0
# expect g 120 121 0
