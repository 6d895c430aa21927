# --check: ordered through a third engine, by the program's own semaphore, by interleaved columns that do not meet.
.input x f32[4,8]
.output y f32[4,8]
.sbuf a f32[4,8]
dma a[:, 0::2], x[:, 0::2] queue=0
dma a[:, 1::2], x[:, 1::2] queue=1
gpsimd: wait wait(q0>=1, q1>=1) signal(s5)
scalar: dma y, a queue=2 wait(s5>=1)
# init x iota
# expect y iota
