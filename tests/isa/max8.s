# max8, find_index8, match_replace8: the eight largest, where they are, and without them.
.input x f32[1,10]
.output m f32[1,8]
.output k ui32[1,8]
.output y f32[1,10]
.output j ui32[1,8]
.sbuf sx f32[1,10] at 0:0
.sbuf sm f32[1,8] at 0:1024
.sbuf sk ui32[1,8] at 0:2048
.sbuf sy f32[1,10] at 0:3072
.sbuf sj ui32[1,8] at 0:4096
.sync auto
dma sx, x
max8 dst=sbuf[0:1024] dtype=f32 d1=1 src=sbuf[0:0] stype=f32 s1=1 n0=1 n1=10
find_index8 dst=sbuf[0:2048] dtype=ui32 d1=1 src=sbuf[0:0] stype=f32 s1=1 src1=sbuf[0:1024] ttype=f32 t1=1 n0=1 n1=10
match_replace8 dst=sbuf[0:3072] dtype=f32 d1=1 src=sbuf[0:0] stype=f32 s1=1 src1=sbuf[0:1024] ttype=f32 t1=1 a=-1.0 res=sbuf[0:4096] rtype=ui32 n0=1 n1=10
dma m, sm
dma k, sk
dma y, sy
dma j, sj
# init x 5 3 9 5 1 7 2 8 4 6
# expect m 9 8 7 6 5 5 4 3
# expect k 2 7 5 9 0 3 8 1
# expect y -1 -1 -1 -1 1 -1 2 -1 -1 -1
# expect j 2 7 5 9 3 0 8 1
