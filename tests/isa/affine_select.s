# affine_select: a causal mask, src where partition >= column.
.input x f32[3,3]
.output y f32[3,3]
.sbuf sx f32[3,3]
.sbuf sy f32[3,3]
.sync auto
dma sx, x
affine_select sy, sx op0=greater_equal a=-9.0 imm=0 t0=1 t1=-1
dma y, sy
# init x 1 2 3 4 5 6 7 8 9
# expect y 1 -9 -9 4 5 -9 7 8 9
