# --check: the store does not wait for the load.
.input x f32[4,8]
.output y f32[4,8]
.sbuf a f32[4,8]
dma a, x queue=0
dma y, a queue=1
# init x iota
# error race: instruction 1 (sync: dma, line 6) reads sbuf[0:0]
