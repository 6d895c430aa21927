# --check: the barrier does not wait for core 1's store, so it may come after core 0's load.
.cores 2
.output y f32[2,4]
.tensor t f32[2,4]
.sbuf a f32[1,4]
.sbuf b f32[1,4]
gpsimd: memset a imm=core
gpsimd: dma t[core:+1], a queue=1 wait(gpsimd>=1)
if core == 0 {
    gpsimd: core_barrier imm=0 wait(q1>=1)
} else {
    gpsimd: core_barrier imm=0
}
gpsimd: dma b, t[1-core:+1] queue=2 wait(gpsimd>=2, q1>=1)
gpsimd: dma y[core:+1], a queue=3
# error core 0: race: instruction 3 (gpsimd: dma, line 14) reads scratch[16] (16 bytes on) that instruction 1 (gpsimd: dma, line 8) of core 1 writes
