# range_select: index between bounds, else the bits of limit; the largest in the register.
.input x f32[2,4]
.input l f32[2,1]
.input h f32[2,1]
.output y f32[2,4]
.output m f32[2,1]
.sbuf sx f32[2,4]
.sbuf sl f32[2,1]
.sbuf sh f32[2,1]
.sbuf sy f32[2,4]
.sbuf sm f32[2,1]
.sync auto
dma sx, x
dma sl, l
dma sh, h
range_select sy, sx op0=greater_equal a=sl op1=less b=sh atype=f32 imm=10 limit=-8388609 res=sm rop=maximum rcmd=reset_reduce
dma y, sy
dma m, sm
# init x 1 2 3 4 8 7 6 5
# init l 11 0
# init h 13 11
# expect y -3.4028234663852886e38 2 3 -3.4028234663852886e38 8 -3.4028234663852886e38 -3.4028234663852886e38 -3.4028234663852886e38
# expect m 3 8
