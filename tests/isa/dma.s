# dma between HBM and SBUF: whole, turned around, repeated, in reverse.
.input x f32[2,3]
.output y f32[3,2]
.output z f32[4,3]
.sbuf a f32[3,2]
.sbuf b f32[4,3]
.sync auto
dma a, x.T
dma y, a
dma b, x[1, *4, :]
dma z, b
# init x 1 2 3 4 5 6
# expect y 1 4 2 5 3 6
# expect z 4 5 6 4 5 6 4 5 6 4 5 6
