# GpSimd kernels that write narrow floats: results 0 to 3 lie a quarter of the way between two of them, result 4 fits.
.output a bf16[4000]
.output b bf16[4000]
.output c bf16[4000]
.output d bf16[1000]
.output e f16[4000]
.tensor x f32[4000]
.tensor h bf16[4000]
.sbuf xs f32[1,4000]
.sbuf hs bf16[1,4000]
.sync auto
.const 003c
.kernel 0 stablehlo.convert (scratch[0]: f32[4000]) -> (result0[0]: bf16[4000]) {}
.kernel 1 otrn.fused (scratch[16000]: bf16[4000]) -> (result1[0]: bf16[4000]) {broadcast_dimensions = [0]} region(bf16, bf16, bf16) inputs 1 { r1 = const 003b; r2 = stablehlo.add r0, r1; return r2 }
.kernel 2 otrn.fused (scratch[0]: f32[4000]) -> (result2[0]: bf16[4000]) {broadcast_dimensions = [0]} region(f32, bf16, bf16, bf16, bf16) inputs 1 { r1 = const 003b; r2 = stablehlo.convert r0; r3 = stablehlo.add r2, r1; r4 = stablehlo.negate r3; return r4 }
.kernel 3 stablehlo.reduce (scratch[16000]: bf16[1000,4], const[0]: bf16[]) -> (result3[0]: bf16[1000]) {dimensions = [1]} region(bf16, bf16, bf16) inputs 2 { r2 = stablehlo.add r0, r1; return r2 }
.kernel 4 stablehlo.convert (scratch[0]: f32[4000]) -> (result4[0]: f16[4000]) {}
memset xs imm=0x3f804000
memset hs imm=0x3f80
dma x[*1], xs
dma h[*1], hs
kernel imm=0
kernel imm=1
kernel imm=2
kernel imm=3
kernel imm=4
