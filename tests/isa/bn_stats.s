# bn_stats, bn_aggr: count, mean and squared differences of even and odd places, then mean and variance.
.input x f32[2,5]
.output y f32[2,6]
.output z f32[2,2]
.sbuf sx f32[2,5] at 0:0
.sbuf sy f32[2,6] at 0:1024
.sbuf sz f32[2,2] at 0:2048
.sync auto
dma sx, x
vector: bn_stats dst=sbuf[0:1024] dtype=f32 d1=1 src=sbuf[0:0] stype=f32 s1=1 n0=2 n1=5
vector: bn_aggr dst=sbuf[0:2048] dtype=f32 d1=1 src=sbuf[0:1024] stype=f32 s1=1 n0=2 n1=6
dma y, sy
dma z, sz
# init x 1 2 3 4 5 1 1 1 1 1
# expect y 3 3 8 2 3 2 3 1 0 2 1 0
# expect z 3 2 1 0
