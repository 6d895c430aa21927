# sequence_bounds: begin and end of each run of equal ids; id 0 has none.
.input x i32[1,6]
.output y i32[1,6,2]
.sbuf sx i32[1,6] at 0:0
.sbuf sy i32[1,6,2] at 0:1024
.sync auto
dma sx, x
sequence_bounds dst=sbuf[0:1024] dtype=i32 d1=2 d2=1 src=sbuf[0:0] stype=i32 s1=1 n1=6
dma y, sy
# init x 1 1 2 0 0 3
# expect y 0 2 0 2 2 3 6 -1 6 -1 5 6
