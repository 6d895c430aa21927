# ldweights, matmul: dst = stationary^T x moving, then once more on top of it.
.input w f32[2,3]
.input x f32[2,2]
.output y f32[3,2]
.sbuf sw f32[2,3]
.sbuf sx f32[2,2]
.sbuf sy f32[3,2]
.psum p f32[3,2]
.sync auto
dma sw, w
dma sx, x
ldweights sw
matmul p, sx
matmul p, sx accumulate=1
tensor_copy sy, p
dma y, sy
# init w 1 2 3 4 5 6
# init x 1 10 100 1000
# expect y 802 8020 1004 10040 1206 12060
