# matmul transpose: the weights' bits, NaN and all, by an identity.
.input w bf16[3,2]
.input x bf16[3,3]
.output y bf16[2,3]
.sbuf sw bf16[3,2] at 0:0
.sbuf sx bf16[3,3] at 0:512
.sbuf sy bf16[2,3] at 0:1024
.psum p bf16[2,3] at 0:0
.sync auto
dma sw, w
dma sx, x
ldweights src=sbuf[0:0] stype=bf16 n0=3 n1=2 s1=1
matmul dst=psum[0:0] src=sbuf[0:512] dtype=bf16 stype=bf16 n0=3 n1=3 n2=2 d1=1 s1=1 flags=transpose
tensor_copy sy, p
dma y, sy
# init w 1 nan 3 4 -inf 6
# init x 1 0 0 0 1 0 0 0 1
# expect y 1 3 -inf nan 4 6
