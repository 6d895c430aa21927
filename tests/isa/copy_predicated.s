# copy_predicated: places whose predicate is zero keep theirs.
.input x f32[1,4]
.input p ui8[1,4]
.input o f32[1,4]
.output y f32[1,4]
.output z f32[1,4]
.sbuf sx f32[1,4]
.sbuf sp ui8[1,4]
.sbuf so f32[1,4]
.sbuf sy f32[1,4]
.sbuf sz f32[1,4]
.sync auto
dma sx, x
dma sp, p
dma so, o
tensor_copy sy, so
copy_predicated sy, sx, sp
tensor_copy sz, so
copy_predicated sz, sx, sp reverse0=1
dma y, sy
dma z, sz
# init x 1 2 3 4
# init p 1 0 0 7
# init o 10 20 30 40
# expect y 1 20 30 4
# expect z 10 2 3 40
