# iota: an affine value of partition and axes, converted.
.output y i32[2,2,3]
.output z f32[2,3]
.sbuf sy i32[2,2,3] at 0:0
.sbuf sz f32[2,3] at 0:512
.sync auto
iota dst=sbuf[0:0] dtype=i32 d1=3 d2=1 imm=100 t0=-50 t1=10 t2=1 n0=2 n1=2 n2=3
iota sz imm=16777217 t0=0 t1=1
dma y, sy
dma z, sz
# expect y 100 101 102 110 111 112 50 51 52 60 61 62
# expect z 16777216 16777218 16777220 16777216 16777218 16777220
