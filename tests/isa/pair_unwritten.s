# --check: core 0 reads what neither core has written when they meet.
.cores 2
.output y f32[2,4]
.tensor t f32[4]
.sbuf a f32[1,4]
.sbuf b f32[1,4]
.sync auto
memset a imm=0
if core == 0 {
    dma b, t[*1]
}
dma y[core:+1], a
gpsimd: core_barrier imm=0
# error core 0: instruction 1 (sync: dma, line 10) reads scratch[0], which nothing has written
