// Attention with dropout, whose chance goes into the softmax's sum: the gradient divides by the sum times 0.9, by its square times 0.9. Both follow from the sum, and of
// each row it and the largest score are kept.
// run: otrn compile %s --lnc=1 --dump=scores
// expect: (tensor<2x512x512xf32>, tensor<2x512x512xi1>) -> (tensor<2x512x512xf32>, tensor<1024xf32>, tensor<1024xf32>)
// run: otrn eval %S/data/scores_inputs.mlir --output=%t/i
// run: otrn run %s --check --input=%t/i/result_0.npy,%t/i/result_1.npy,%t/i/result_2.npy,%t/i/result_3.npy,%t/i/result_4.npy --output=%t/a && otrn eval %s --input=%t/i/result_0.npy,%t/i/result_1.npy,%t/i/result_2.npy,%t/i/result_3.npy,%t/i/result_4.npy --output=%t/b
// run: otrn eval %S/data/scores_same.mlir --input=%t/a/result_2.npy,%t/a/result_1.npy,%t/b/result_2.npy,%t/b/result_1.npy
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x512x64xf32>, %arg1: tensor<2x512x64xf32>, %arg2: tensor<2x512x64xf32>, %arg3: tensor<2x512x64xf32>, %arg4: tensor<2x512x512xi1>) -> (tensor<2x512x64xf32>, tensor<2x512x64xf32>, tensor<2x512x64xf32>, tensor<2x512x64xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x512x64xf32>, tensor<2x512x64xf32>) -> tensor<2x512x512xf32>
    %cst = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x512x512xf32>
    %2 = stablehlo.divide %0, %1 : tensor<2x512x512xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %3 = stablehlo.reduce(%2 init: %cst_0) applies stablehlo.maximum across dimensions = [2] : (tensor<2x512x512xf32>, tensor<f32>) -> tensor<2x512xf32>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x512xf32>
    %5 = stablehlo.maximum %4, %3 : tensor<2x512xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<2x512xf32>) -> tensor<2x512x1xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1, 2] : (tensor<2x512x1xf32>) -> tensor<2x512x512xf32>
    %8 = stablehlo.subtract %2, %7 : tensor<2x512x512xf32>
    %9 = stablehlo.exponential %8 : tensor<2x512x512xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.reduce(%9 init: %cst_2) applies stablehlo.add across dimensions = [2] : (tensor<2x512x512xf32>, tensor<f32>) -> tensor<2x512xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<2x512xf32>) -> tensor<2x512x1xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2] : (tensor<2x512x1xf32>) -> tensor<2x512x512xf32>
    %13 = stablehlo.divide %9, %12 : tensor<2x512x512xf32>
    %14 = stablehlo.multiply %11, %11 : tensor<2x512x1xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x512x1xf32>
    %16 = stablehlo.divide %15, %14 : tensor<2x512x1xf32>
    %cst_4 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x512x512xf32>
    %18 = stablehlo.divide %13, %17 : tensor<2x512x512xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %19 = call @_where(%arg4, %18, %c) : (tensor<2x512x512xi1>, tensor<2x512x512xf32>, tensor<i32>) -> tensor<2x512x512xf32>
    %20 = stablehlo.dot_general %19, %arg2, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x512x512xf32>, tensor<2x512x64xf32>) -> tensor<2x512x64xf32>
    %21 = stablehlo.dot_general %arg3, %19, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x512x64xf32>, tensor<2x512x512xf32>) -> tensor<2x64x512xf32>
    %22 = stablehlo.transpose %21, dims = [0, 2, 1] : (tensor<2x64x512xf32>) -> tensor<2x512x64xf32>
    %23 = stablehlo.dot_general %arg3, %arg2, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x512x64xf32>, tensor<2x512x64xf32>) -> tensor<2x512x512xf32>
    %24 = call @_where_0(%arg4, %23) : (tensor<2x512x512xi1>, tensor<2x512x512xf32>) -> tensor<2x512x512xf32>
    %cst_5 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x512x512xf32>
    %26 = stablehlo.divide %24, %25 : tensor<2x512x512xf32>
    %27 = stablehlo.broadcast_in_dim %16, dims = [0, 1, 2] : (tensor<2x512x1xf32>) -> tensor<2x512x512xf32>
    %28 = stablehlo.multiply %26, %27 : tensor<2x512x512xf32>
    %29 = stablehlo.multiply %28, %9 : tensor<2x512x512xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %30 = stablehlo.reduce(%29 init: %cst_6) applies stablehlo.add across dimensions = [2] : (tensor<2x512x512xf32>, tensor<f32>) -> tensor<2x512xf32>
    %31 = stablehlo.reshape %30 : (tensor<2x512xf32>) -> tensor<2x512x1xf32>
    %32 = stablehlo.negate %31 : tensor<2x512x1xf32>
    %33 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2] : (tensor<2x512x1xf32>) -> tensor<2x512x512xf32>
    %34 = stablehlo.divide %26, %33 : tensor<2x512x512xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %35 = stablehlo.reduce(%32 init: %cst_7) applies stablehlo.add across dimensions = [2] : (tensor<2x512x1xf32>, tensor<f32>) -> tensor<2x512xf32>
    %36 = stablehlo.broadcast_in_dim %35, dims = [0, 1] : (tensor<2x512xf32>) -> tensor<2x512x512xf32>
    %37 = stablehlo.add %34, %36 : tensor<2x512x512xf32>
    %38 = stablehlo.multiply %37, %9 : tensor<2x512x512xf32>
    %cst_8 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<2x512x512xf32>
    %40 = stablehlo.divide %38, %39 : tensor<2x512x512xf32>
    %41 = stablehlo.dot_general %40, %arg0, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x512x512xf32>, tensor<2x512x64xf32>) -> tensor<2x512x64xf32>
    %42 = stablehlo.dot_general %40, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x512x512xf32>, tensor<2x512x64xf32>) -> tensor<2x512x64xf32>
    return %20, %42, %41, %22 : tensor<2x512x64xf32>, tensor<2x512x64xf32>, tensor<2x512x64xf32>, tensor<2x512x64xf32>
  }
  func.func private @_where(%arg0: tensor<2x512x512xi1>, %arg1: tensor<2x512x512xf32>, %arg2: tensor<i32>) -> tensor<2x512x512xf32> {
    %0 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2x512x512xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<2x512x512xi1>, tensor<2x512x512xf32>
    return %2 : tensor<2x512x512xf32>
  }
  func.func private @_where_0(%arg0: tensor<2x512x512xi1>, %arg1: tensor<2x512x512xf32>) -> tensor<2x512x512xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x512x512xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<2x512x512xi1>, tensor<2x512x512xf32>
    return %1 : tensor<2x512x512xf32>
  }
}
