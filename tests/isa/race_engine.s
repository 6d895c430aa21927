# --check: a DMA that an engine triggers does not wait for what that engine computes.
.output y f32[4,8]
.sbuf a f32[4,8]
vector: memset a imm=0
vector: dma y, a
# error race: instruction 1 (vector: dma, line 5) reads sbuf[0:0]
