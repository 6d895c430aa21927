# scalar_tensor_tensor: (src op0 a) op1 src1, src1 repeated over an axis.
.input x f32[2,2,2]
.input y f32[2,2]
.output z f32[2,2,2]
.sbuf sx f32[2,2,2]
.sbuf sy f32[2,2]
.sbuf sz f32[2,2,2]
.sync auto
dma sx, x
dma sy, y
scalar_tensor_tensor sz, sx, sy[:, *2, :] op0=add a=1.0 op1=multiply
dma z, sz
# init x 1 2 3 4 5 6 7 8
# init y 10 100 1 -1
# expect z 20 300 40 500 6 -7 8 -9
