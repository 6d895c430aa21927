# reciprocal: 1 / src.
.input x f32[1,4]
.output y f32[1,4]
.sbuf sx f32[1,4]
.sbuf sy f32[1,4]
.sync auto
dma sx, x
reciprocal sy, sx
dma y, sy
# init x 4 -0.5 inf 0
# expect y 0.25 -2 0 inf
