# dma_indirect: a row that is not there.
.input x f32[4,2]
.input k i32[3,1]
.output y f32[3,2]
.sbuf sk i32[3,1] at 0:0
.sbuf sy f32[3,2] at 0:64
.sync auto
dma sk, k
gpsimd: dma_indirect dst=sbuf[0:64] src=arg0[0] stype=f32 src1=sbuf[0:0] ttype=i32 limit=4 n0=3 n1=2 d1=1 s0=2 s1=1
dma y, sy
# init x 1
# init k 3 4 1
# error row 4 of partition 1 is outside the 4 rows of src
