# dma_transpose: neighbours in src go to different partitions.
.input x bf16[2,3]
.output y bf16[3,2]
.sbuf a bf16[3,2] at 0:0
.sync auto
dma_transpose dst=sbuf[0:0] src=arg0[0] stype=bf16 n0=3 n1=2 d1=1 s0=1 s1=3
dma y, a
# init x 1 2 3 4 5 6
# expect y 1 4 2 5 3 6
