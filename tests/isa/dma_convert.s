# dma that converts, through fp32, and combines with what dst holds.
.input x f32[2,3]
.output y bf16[2,3]
.output z i8[2,3]
.output w f32[2,3]
.sbuf a f32[2,3]
.sync auto
dma dst=result0[0] src=arg0[0] stype=f32 dtype=bf16 n0=2 n1=3
dma dst=result1[0] src=arg0[0] stype=f32 dtype=i8 n0=2 n1=3
dma a, x
dma a, x op0=add
dma a, x op0=maximum
dma w, a
# init x 1 257 2.5 -1 -300 3.5
# expect y 1 256 2.5 -1 -300 3.5
# expect z 1 127 2 -1 -128 4
# expect w 2 514 5 -1 -300 7
