# sendrecv: a core alone has nobody to exchange with.
.output y f32[1,1]
.sbuf a f32[1,1] at 0:0
.sbuf b f32[1,1] at 0:64
.sync auto
memset a imm=0
sync: sendrecv dst=sbuf[0:64] src=sbuf[0:0] stype=f32 imm=1 n0=1 n1=1
dma y, b
# error this core has no pair
