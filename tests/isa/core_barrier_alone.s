# core_barrier: a core alone has nobody to wait for.
.output y f32[1,1]
.sbuf a f32[1,1]
.sync auto
memset a imm=0
gpsimd: core_barrier imm=0
dma y, a
# error this core has no pair
