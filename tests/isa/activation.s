# activation: fn(src * a + b), sums in the register; sin goes on as its cubic outside of [-pi, pi].
.input x f32[1,4]
.output y f32[1,4]
.output s f32[1,1]
.output z f32[1,4]
.output u f32[1,1]
.sbuf sx f32[1,4]
.sbuf sy f32[1,4]
.sbuf ss f32[1,1]
.sbuf sz f32[1,4]
.sbuf su f32[1,1]
.sync auto
dma sx, x
activation sy, sx fn=relu a=2.0 b=1.0 res=ss rop=add rcmd=reset_reduce
activation sz, sx fn=sin res=su rop=add rcmd=reduce
dma y, sy
dma s, ss
dma z, sz
dma u, su
# init x 9 -3 0.5 1
# expect y 19 0 2 3
# expect s 24
# expect z 27.653 -0.14112 0.479426 0.841471 tol=1e-4
# expect u 52.832777 tol=1e-4
