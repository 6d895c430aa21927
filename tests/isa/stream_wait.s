# stream_wait: the collective behind it in its stream waits too, for three queues here, while sync goes on.
.input x f32[4]
.output y f32[4]
.output z f32[4]
.tensor t f32[4]
.sbuf a f32[1,4]
.kernel 0 stablehlo.all_reduce (scratch[0]: f32[4]) -> (result0[0]: f32[4]) {channel_id = 0, replica_groups = x1[0], use_global_device_ids = false} region(f32, f32, f32) inputs 2 { r2 = stablehlo.add r0, r1; return r2 }
sync: dma a, x queue=0
gpsimd: dma t, a queue=1 wait(q0>=1)
sync: stream_wait queue=12 wait(q0>=1, q1>=1)
sync: collective imm=0 queue=12
sync: dma z, x queue=2
# init x 1 2 3 4
# expect y 1 2 3 4
# expect z 1 2 3 4
