# --check: core 0 reads before the barrier what core 1 writes without it; nothing has written it by then.
.cores 2
.output y f32[2,4]
.tensor t f32[4]
.sbuf a f32[1,4]
.sbuf b f32[1,4]
.sync auto
memset a imm=0
if core == 0 {
    dma b, t[*1]
} else {
    dma t[*1], a
}
gpsimd: core_barrier imm=0
dma y[core:+1], a
# error core 1: race: instruction 1 (sync: dma, line 12) writes scratch[0] (16 bytes on) that instruction 1 (sync: dma, line 10) of core 0 reads
