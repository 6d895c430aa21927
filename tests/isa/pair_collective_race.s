# --check: a collective is between devices: it orders nothing between the cores of one.
.cores 2
.input x f32[2,4]
.output y f32[2,4]
.tensor t f32[2,4]
.tensor z f32[2,4]
.sbuf a f32[1,4] at 0:0
.sbuf b f32[1,4] at 0:64
.kernel 0 stablehlo.all_reduce (arg0[0]: f32[4]) -> (scratch[32]: f32[4]) {channel_id = 0, replica_groups = x1[0], use_global_device_ids = false} region(f32, f32, f32) inputs 2 { r2 = stablehlo.add r0, r1; return r2 }
.kernel 1 stablehlo.all_reduce (arg0[16]: f32[4]) -> (scratch[48]: f32[4]) {channel_id = 0, replica_groups = x1[0], use_global_device_ids = false} region(f32, f32, f32) inputs 2 { r2 = stablehlo.add r0, r1; return r2 }
dma a, x[core:+1] queue=0
sync: dma t[core:+1], a queue=1 wait(q0>=1)
sync: collective imm=core queue=3 wait(q1>=1)
if core == 1 {
    vector: dma b, t[0:+1] queue=4 wait(q3>=1)
}
vector: dma y[core:+1], a queue=5 wait(q0>=1)
# error core 1: race: instruction 3 (vector: dma, line 15) reads scratch[0] (16 bytes on) that instruction 1 (sync: dma, line 12) of core 0 writes
