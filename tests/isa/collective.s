# collective: members are devices, and a pair is one: each core has its own row back. Core 1 then changes its own.
.cores 2
.input x f32[2,4]
.output y f32[2,4]
.sbuf a f32[1,4]
.kernel 0 stablehlo.all_reduce (arg0[0]: f32[4]) -> (result0[0]: f32[4]) {channel_id = 0, replica_groups = x1[0], use_global_device_ids = false} region(f32, f32, f32) inputs 2 { r2 = stablehlo.add r0, r1; return r2 }
.kernel 1 stablehlo.all_reduce (arg0[16]: f32[4]) -> (result0[16]: f32[4]) {channel_id = 0, replica_groups = x1[0], use_global_device_ids = false} region(f32, f32, f32) inputs 2 { r2 = stablehlo.add r0, r1; return r2 }
.sync auto
collective imm=core queue=3
if core == 1 {
    dma a, y[1:+1]
    vector: tensor_scalar a, a op0=multiply a=2.0
    dma y[1:+1], a
}
# init x 1 2 3 4 10 20 30 40
# expect y 1 2 3 4 20 40 60 80
