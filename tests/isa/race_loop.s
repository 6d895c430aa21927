# --check: one buffer is enough for a wait on the load, but the next load does not wait for the store.
.input x f32[4,8]
.output y f32[4,8]
.sbuf a f32[1,8]
loop i = 0, 4 {
    dma a, x[i:+1, :] queue=0
    scalar: dma y[i:+1, :], a queue=1 wait(q0-0)
}
# init x iota
# error race: instruction 1 (sync: dma, line 6) writes sbuf[0:0] (32 bytes on) that instruction 2 (scalar: dma, line 7) reads
