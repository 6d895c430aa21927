# core_barrier: each core leaves a row in HBM; once both have passed, each takes the other's.
.cores 2
.input x f32[2,4]
.output y f32[2,4]
.tensor t f32[2,4]
.sbuf a f32[1,4] at 0:0
.sbuf b f32[1,4] at 0:64
dma a, x[core:+1] queue=0
vector: tensor_scalar a, a op0=multiply a=10.0 wait(q0>=1)
vector: dma t[core:+1], a wait(vector>=1) queue=1
gpsimd: core_barrier imm=0 wait(q1>=1)
gpsimd: dma b, t[1-core:+1] wait(gpsimd>=1) queue=2
vector: tensor_tensor b, b, a op0=subtract wait(q2>=1)
vector: dma y[core:+1], b wait(vector>=2) queue=3
# init x 1 2 3 4 5 7 9 11
# expect y 40 50 60 70 -40 -50 -60 -70
