# --check: sendrecv orders HBM too, and a later engine knows it through a semaphore.
.cores 2
.input x f32[2,4]
.output y f32[2,4]
.tensor t f32[2,4]
.sbuf a f32[1,4] at 0:0
.sbuf b f32[1,4] at 0:64
dma a, x[core:+1] queue=0
sync: dma t[core:+1], a queue=1 wait(q0>=1)
sync: sendrecv b, a imm=1-core value=0 queue=2 wait(q1>=1)
scalar: wait wait(q2>=1) signal(s4)
vector: dma a, t[1-core:+1] queue=3 wait(s4>=1)
vector: tensor_tensor a, a, b op0=subtract wait(q3>=1, q2>=1)
vector: dma y[core:+1], a queue=4 wait(vector>=1)
# init x 1 2 3 4 5 7 9 11
# expect y 0*8
