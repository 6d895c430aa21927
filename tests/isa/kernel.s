# kernel: a GpSimd kernel over HBM tensors; the second one waits for the first.
.input x f32[2,4]
.output y f32[2,4]
.output z f32[4]
.const f32 0
.kernel 0 stablehlo.multiply (arg0[0]: f32[2,4], arg0[0]: f32[2,4]) -> (result0[0]: f32[2,4])
.kernel 1 stablehlo.reduce (result0[0]: f32[2,4], const[0]: f32[]) -> (result1[0]: f32[4]) {dimensions = [0]} region(f32, f32, f32) inputs 2 { r2 = stablehlo.add r0, r1; return r2 }
.sync auto
kernel imm=0
kernel imm=1
# init x 1 2 3 4 5 6 7 8
# expect y 1 4 9 16 25 36 49 64
# expect z 26 40 58 80
