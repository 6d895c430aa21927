# tensor_scan: r = src * r + src1, a chain per partition.
.input x f32[2,3]
.input y f32[2,3]
.input b f32[2,1]
.output z f32[2,3]
.sbuf sx f32[2,3]
.sbuf sy f32[2,3]
.sbuf sb f32[2,1]
.sbuf sz f32[2,3]
.sync auto
dma sx, x
dma sy, y
dma sb, b
tensor_scan sz, sx, sy op0=multiply op1=add a=sb
dma z, sz
# init x 1 2 3 0 1 2
# init y 1 1 1 5 6 7
# init b 10 100
# expect z 11 23 70 5 11 29
