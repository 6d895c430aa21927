# wait, signal, barrier: a chain over the program's own semaphores.
.input x f32[4]
.output y f32[4]
.sbuf a f32[1,4]
dma a, x[*1, :] signal(s3)
scalar: wait wait(s3>=1) signal(s4+2)
barrier
vector: nop signal(s3+2)
scalar: dma y[*1, :], a queue=1 wait(s3>=2)
halt
# init x 1 2 3 4
# expect y 1 2 3 4
