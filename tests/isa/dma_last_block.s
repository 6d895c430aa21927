# A row of one element more than a block: brought for an instruction that looks beyond its partition, so that it lies in SBUF though
# instructions are joined.
# run: echo 'func.func @main() -> tensor<4x1025xf32> { %%0 = stablehlo.constant dense<1.0> : tensor<4x1025xf32> return %%0 : tensor<4x1025xf32> }' > %t/ones.mlir
# run: otrn eval %t/ones.mlir --output=%t/x && otrn run %s --plan=all --input=x=%t/x/result_0.npy --output=%t/joined
# run: otrn run %s --plan=off --input=x=%t/x/result_0.npy --output=%t/alone && cmp %t/joined/result_0.npy %t/alone/result_0.npy
.input x f32[4,1025]
.output y f32[1,1025]
.output z f32[4,1025]
.sbuf sx f32[4,1025]
.sbuf sy f32[1,1025]
.sbuf sz f32[4,1025]
.sync auto
dma sx, x
tensor_scalar sz, sx op0=add a=1.0
partition_reduce sy, sx op0=add
dma y, sy
dma z, sz
