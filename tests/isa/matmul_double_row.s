# matmul double_row: two fp8 rows a cell, a sum over both; a moving pattern of two axes.
.input w f8E4M3[2,2,2]
.input x f8E4M3[2,2,4]
.output y f32[2,4]
.sbuf sw f8E4M3[2,2,2] at 0:0
.sbuf sx f8E4M3[2,2,4] at 0:512
.sbuf sy f32[2,4] at 0:1024
.psum p f32[2,4] at 0:0
.sync auto
dma sw, w
dma sx, x
ldweights src=sbuf[0:0] stype=f8E4M3 n0=2 n1=2 s1=1 flags=double_row step=2
matmul dst=psum[0:0] src=sbuf[0:512] stype=f8E4M3 n0=2 n1=2 n2=2 n3=2 d1=1 d3=2 s1=1 s3=2 flags=double_row step=4
tensor_copy sy, p
dma y, sy
# init w 1 2 3 4 5 6 7 8
# init x 1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1
# expect y 1 3 5 7 2 4 6 8
