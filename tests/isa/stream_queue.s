# A queue that is not there, of an instruction that only waits.
.input x f32[4]
.output y f32[4]
sync: dma y, x queue=0
sync: stream_wait queue=127 wait(q0>=1)
# init x 1 2 3 4
# error queue 127 does not exist, there are 16
