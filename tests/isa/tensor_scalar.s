# tensor_scalar: two operations, operands swapped, a column, types that saturate and round to even.
.input x f32[2,3]
.input c f32[2,1]
.output y f32[2,3]
.output r f32[2,3]
.output k i8[2,3]
.output h bf16[2,3]
.sbuf sx f32[2,3]
.sbuf sc f32[2,1]
.sbuf sy f32[2,3]
.sbuf sr f32[2,3]
.sbuf sk i8[2,3]
.sbuf sh bf16[2,3]
.sync auto
dma sx, x
dma sc, c
tensor_scalar sy, sx op0=multiply a=2.0 op1=add b=sc
tensor_scalar sr, sx op0=subtract a=1.0 reverse0=1
tensor_scalar sk, sx op0=multiply a=100.0
tensor_scalar sh, sx op0=add a=256.0
dma y, sy
dma r, sr
dma k, sk
dma h, sh
# init x 1 0.005 3 -2 0.025 0.015
# init c 10 100
# expect y 12 10.01 16 96 100.05 100.03 tol=1e-6
# expect r 0 0.995 -2 3 0.975 0.985 tol=1e-6
# expect k 100 0 127 -128 2 2
# expect h 256 256 260 254 256 256
