# dma_indirect: rows by index, gathered, with skip, and scattered with add.
.input x f32[4,2]
.input k i32[3,1]
.output y f32[3,2]
.output z f32[4,2]
.sbuf sk i32[3,1] at 0:0
.sbuf sy f32[3,2] at 0:64
.sync auto
dma sk, k
dma z, x
vector: memset sy imm=0
gpsimd: dma_indirect dst=sbuf[0:64] src=arg0[0] stype=f32 src1=sbuf[0:0] ttype=i32 flags=skip limit=4 n0=3 n1=2 d1=1 s0=2 s1=1
gpsimd: dma_indirect dst=result1[0] src=sbuf[0:64] stype=f32 op0=add src1=sbuf[0:0] ttype=i32 flags=skip limit=4 n0=3 n1=2 d0=2 d1=1 s1=1
dma y, sy
# init x 1 2 3 4 5 6 7 8
# init k 3 -1 1
# expect y 7 8 0 0 3 4
# expect z 1 2 6 8 5 6 14 16
