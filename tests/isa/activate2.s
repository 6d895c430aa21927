# activate2: two operations before the function, prelu with its parameter, the largest result.
.target "trn3"
.input x f32[1,4]
.output y f32[1,4]
.output m f32[1,1]
.sbuf sx f32[1,4]
.sbuf sy f32[1,4]
.sbuf sm f32[1,1]
.sync auto
dma sx, x
activate2 sy, sx fn=prelu op0=subtract a=1.0 op1=multiply b=2.0 value=0x3f000000 res=sm rop=abs_max rcmd=reset_reduce
dma y, sy
dma m, sm
# init x 3 0 -4 1
# expect y 4 -1 -5 0
# expect m 5
