# tensor_reduce: over the last axis, over the first, negated, bits.
.input x f32[2,2,3]
.input k i32[1,4]
.output y f32[2,2,1]
.output z f32[2,1,3]
.output m f32[2,1,1]
.output o i32[1,1]
.sbuf sx f32[2,2,3]
.sbuf sk i32[1,4]
.sbuf sy f32[2,2,1]
.sbuf sz f32[2,1,3]
.sbuf sm f32[2,1,1]
.sbuf so i32[1,1]
.sync auto
dma sx, x
dma sk, k
tensor_reduce sy, sx op0=add
tensor_reduce sz, sx op0=multiply
tensor_reduce sm, sx op0=minimum negate=1
tensor_reduce so, sk op0=bitwise_or
dma y, sy
dma z, sz
dma m, sm
dma o, so
# init x 1 2 3 4 5 6 -1 0 1 2 nan 3
# init k 1 2 8 2
# expect y 6 15 0 nan
# expect z 4 10 18 -2 nan 3
# expect m -1 nan
# expect o 11
