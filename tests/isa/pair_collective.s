# --check: a collective in which both cores wait for each other orders HBM: behind it each may read what the other wrote before.
.cores 2
.input x f32[2,4]
.output y f32[2,4]
.tensor t f32[2,4]
.tensor z f32[2,4]
.sbuf a f32[1,4] at 0:0
.sbuf b f32[1,4] at 0:64
.kernel 0 stablehlo.all_reduce (arg0[0]: f32[4]) -> (scratch[32]: f32[4]) {channel_id = 0, replica_groups = x2[0, 1], use_global_device_ids = false} region(f32, f32, f32) inputs 2 { r2 = stablehlo.add r0, r1; return r2 }
.kernel 1 stablehlo.all_reduce (arg0[16]: f32[4]) -> (scratch[48]: f32[4]) {channel_id = 0, replica_groups = x2[0, 1], use_global_device_ids = false} region(f32, f32, f32) inputs 2 { r2 = stablehlo.add r0, r1; return r2 }
dma a, x[core:+1] queue=0
sync: dma t[core:+1], a queue=1 wait(q0>=1)
sync: collective imm=core queue=3 wait(q1>=1)
vector: dma b, t[1-core:+1] queue=4 wait(q3>=1)
vector: dma y[core:+1], b queue=5 wait(q4>=1)
# init x 1 2 3 4 5 7 9 11
# expect y 5 7 9 11 1 2 3 4
