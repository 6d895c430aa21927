# exponential: exp(src - a) and its sum.
.target "trn3"
.input x f32[2,3]
.input m f32[2,1]
.output y f32[2,3]
.output s f32[2,1]
.sbuf sx f32[2,3]
.sbuf sm f32[2,1]
.sbuf sy f32[2,3]
.sbuf ss f32[2,1]
.sync auto
dma sx, x
dma sm, m
exponential sy, sx a=sm res=ss rcmd=reset_reduce
dma y, sy
dma s, ss
# init x 1 2 3 5 5 5
# init m 3 5
# expect y 0.135335283 0.367879441 1 1 1 1 tol=1e-6
# expect s 1.503214724 3 tol=1e-6
