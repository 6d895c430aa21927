# nonzero_count: where the non-zeros are, padding, and how many.
.input x f32[1,5]
.output y i32[1,6]
.sbuf sx f32[1,5] at 0:0
.sbuf sy i32[1,6] at 0:1024
.sync auto
dma sx, x
nonzero_count dst=sbuf[0:1024] dtype=i32 d1=1 src=sbuf[0:0] stype=f32 s1=1 imm=10 value=-7 n0=1 n1=5
dma y, sy
# init x 0 3 0 nan -1
# expect y 11 13 14 -7 -7 3
