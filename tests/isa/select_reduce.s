# select_reduce: src where src1 is not zero, else a; the largest in the register.
.input x f32[1,4]
.input p ui8[1,4]
.output y f32[1,4]
.output m f32[1,1]
.output z f32[1,4]
.sbuf sx f32[1,4]
.sbuf sp ui8[1,4]
.sbuf sy f32[1,4]
.sbuf sm f32[1,1]
.sbuf sz f32[1,4]
.sync auto
dma sx, x
dma sp, p
select_reduce sy, sx, sp a=2.5 res=sm rop=maximum rcmd=reset_reduce
select_reduce sz, sx, sp a=2.5 reverse0=1
dma y, sy
dma m, sm
dma z, sz
# init x 1 9 3 4
# init p 1 0 0 7
# expect y 1 2.5 2.5 4
# expect m 4
# expect z 2.5 9 3 2.5
