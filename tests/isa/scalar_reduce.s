# scalar_reduce: src op0 a, its product negated.
.input x f32[2,3]
.output y f32[2,3]
.output r f32[2,1]
.sbuf sx f32[2,3]
.sbuf sy f32[2,3]
.sbuf sr f32[2,1]
.sync auto
dma sx, x
scalar_reduce sy, sx op0=add a=1.0 res=sr rop=multiply rcmd=reset_reduce negate=1
dma y, sy
dma r, sr
# init x 0 1 2 3 4 5
# expect y 1 2 3 4 5 6
# expect r -6 -120
