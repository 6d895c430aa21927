# scalar_cumulative: running sums; the next one goes on, or begins with b.
.input x f32[1,4]
.output y f32[1,4]
.output z f32[1,4]
.output w f32[1,4]
.sbuf sx f32[1,4]
.sbuf sy f32[1,4]
.sbuf sz f32[1,4]
.sbuf sw f32[1,4]
.sync auto
dma sx, x
scalar_cumulative sy, sx op0=multiply a=2.0 op1=add rcmd=reset_reduce
scalar_cumulative sz, sx op0=add a=0.0 op1=add rcmd=reduce
scalar_cumulative sw, sx op0=add a=0.0 op1=maximum rcmd=load_reduce b=2.5
dma y, sy
dma z, sz
dma w, sw
# init x 1 2 3 4
# expect y 2 6 12 20
# expect z 21 23 26 30
# expect w 2.5 2.5 3 4
