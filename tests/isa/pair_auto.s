# Two cores hand rows to each other through HBM, twice, with the assembler's waits: core_barrier stands for all of HBM.
.cores 2
.input x f32[2,4]
.output y f32[2,4]
.tensor t f32[2,4]
.sbuf a f32[1,4]
.sync auto
dma a, x[core:+1]
for i = 0, 3 {
    vector: tensor_scalar a, a op0=multiply a=2.0
    dma t[core:+1], a queue=1
    gpsimd: core_barrier imm=0
    dma a, t[1-core:+1] queue=2
    gpsimd: core_barrier imm=1
}
dma y[core:+1], a queue=3
# init x 1*4 3*4
# expect y 24*4 8*4
