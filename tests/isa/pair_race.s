# --check: core 1 takes what core 0 leaves in HBM without a meeting between.
.cores 2
.input x f32[2,4]
.output y f32[2,4]
.tensor t f32[4]
.sbuf a f32[1,4]
.sbuf b f32[1,4]
.sync auto
dma a, x[core:+1]
if core == 0 {
    dma t[*1], a
} else {
    dma b, t[*1]
}
dma y[core:+1], a
# error core 1: race: instruction 1 (sync: dma, line 13) reads scratch[0] (16 bytes on) that instruction 1 (sync: dma, line 11) of core 0 writes
