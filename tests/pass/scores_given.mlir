// A gradient to which the numbers per row are given: what two programs make of such numbers (here times 0.9) does not keep them apart. The weights
// are made where the scores' gradient is, by one program.
// run: otrn compile %s --lnc=1 --dump=scores > %t/scores && grep -c '"otrn.rows"' %t/scores
// expect: 1
// run: otrn eval %S/data/scores_inputs.mlir --output=%t/i
// run: otrn run %s --check --input=%t/i/result_0.npy,%t/i/result_1.npy,%t/i/result_2.npy,%t/i/result_3.npy,%t/i/result_4.npy,%t/i/result_5.npy,%t/i/result_6.npy --output=%t/a && otrn eval %s --input=%t/i/result_0.npy,%t/i/result_1.npy,%t/i/result_2.npy,%t/i/result_3.npy,%t/i/result_4.npy,%t/i/result_5.npy,%t/i/result_6.npy --output=%t/b
// run: otrn eval %S/data/scores_same.mlir --input=%t/a/result_0.npy,%t/a/result_1.npy,%t/b/result_0.npy,%t/b/result_1.npy
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x512x64xf32>, %arg1: tensor<2x512x64xf32>, %arg2: tensor<2x512x64xf32>, %arg3: tensor<2x512x64xf32>, %arg4: tensor<2x512x512xi1>, %arg5: tensor<2x512xf32>, %arg6: tensor<2x512xf32>) -> (tensor<2x512x64xf32>, tensor<2x512x64xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x512x64xf32>, tensor<2x512x64xf32>) -> tensor<2x512x512xf32>
    %1 = stablehlo.broadcast_in_dim %arg5, dims = [0, 1] : (tensor<2x512xf32>) -> tensor<2x512x1xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2] : (tensor<2x512x1xf32>) -> tensor<2x512x512xf32>
    %3 = stablehlo.subtract %0, %2 : tensor<2x512x512xf32>
    %4 = stablehlo.exponential %3 : tensor<2x512x512xf32>
    %cst = stablehlo.constant dense<0.899999976> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x512xf32>
    %6 = stablehlo.multiply %arg6, %5 : tensor<2x512xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1] : (tensor<2x512xf32>) -> tensor<2x512x1xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<2x512x1xf32>) -> tensor<2x512x512xf32>
    %9 = stablehlo.divide %4, %8 : tensor<2x512x512xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %10 = call @_where(%arg4, %9, %c) : (tensor<2x512x512xi1>, tensor<2x512x512xf32>, tensor<i32>) -> tensor<2x512x512xf32>
    %11 = stablehlo.dot_general %10, %arg3, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x512x512xf32>, tensor<2x512x64xf32>) -> tensor<2x512x64xf32>
    %12 = stablehlo.dot_general %arg3, %arg2, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x512x64xf32>, tensor<2x512x64xf32>) -> tensor<2x512x512xf32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %13 = call @_where(%arg4, %12, %c_0) : (tensor<2x512x512xi1>, tensor<2x512x512xf32>, tensor<i32>) -> tensor<2x512x512xf32>
    %14 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<2x512x1xf32>) -> tensor<2x512x512xf32>
    %15 = stablehlo.divide %13, %14 : tensor<2x512x512xf32>
    %16 = stablehlo.multiply %4, %15 : tensor<2x512x512xf32>
    %17 = stablehlo.dot_general %16, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x512x512xf32>, tensor<2x512x64xf32>) -> tensor<2x512x64xf32>
    return %11, %17 : tensor<2x512x64xf32>, tensor<2x512x64xf32>
  }
  func.func private @_where(%arg0: tensor<2x512x512xi1>, %arg1: tensor<2x512x512xf32>, %arg2: tensor<i32>) -> tensor<2x512x512xf32> {
    %0 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x512x512xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<2x512x512xi1>, tensor<2x512x512xf32>
    return %2 : tensor<2x512x512xf32>
  }
}
