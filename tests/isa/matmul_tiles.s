# ldweights, matmul: two row tiles of the array with their own weights.
.input w f32[2,2]
.input v f32[2,2]
.input x f32[2,2]
.input u f32[2,2]
.output y f32[2,4]
.sbuf sw f32[2,2] at 0:0
.sbuf sv f32[2,2] at 64:0
.sbuf sx f32[2,2] at 0:512
.sbuf su f32[2,2] at 64:512
.sbuf sy f32[2,4] at 0:1024
.psum p f32[2,4] at 0:0
.sync auto
dma sw, w
dma sv, v
dma sx, x
dma su, u
ldweights src=sbuf[0:0] stype=f32 n0=2 n1=2 s1=1 trows=64 tcols=64
ldweights src=sbuf[64:0] stype=f32 n0=2 n1=2 s1=1 trow=64 trows=64 tcols=64
matmul dst=psum[0:0] src=sbuf[0:512] stype=f32 n0=2 n1=2 n2=2 d1=1 s1=1 trows=64 tcols=64
matmul dst=psum[0:8] src=sbuf[64:512] stype=f32 n0=2 n1=2 n2=2 d1=1 s1=1 trow=64 trows=64 tcols=64
tensor_copy sy, p
dma y, sy
# init w 1 0 0 1
# init v 0 2 2 0
# init x 1 2 3 4
# init u 5 6 7 8
# expect y 1 2 14 16 3 4 10 12
