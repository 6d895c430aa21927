# n_gather: each partition by its own indices.
.input x f32[2,4]
.input k ui32[2,3]
.output y f32[2,3]
.sbuf sx f32[2,4] at 0:0
.sbuf sk ui32[2,3] at 0:512
.sbuf sy f32[2,3] at 0:1024
.sync auto
dma sx, x
dma sk, k
n_gather dst=sbuf[0:1024] dtype=f32 d1=1 src=sbuf[0:0] stype=f32 s1=1 src1=sbuf[0:512] ttype=ui32 t1=1 imm=4 n0=2 n1=3
dma y, sy
# init x 0 1 2 3 10 11 12 13
# init k 3 0 0 1 2 3
# expect y 3 0 0 11 12 13
