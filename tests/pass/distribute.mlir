// Attention with dropout: its gradient draws the flags once for the weights and for their gradient (pass/distribute.c), a choice less for each tile of
// 128 rows of two heads. The chip agrees with the evaluator, with the pass and without.
// run: otrn compile %s --target=trn2 --lnc=1 --cache=off --dump=tile | grep -c dropout_at
// expect: 8
// run: otrn compile %s --target=trn2 --lnc=1 --cache=off --dump=tile --disable-pass=distribute | grep -c dropout_at
// expect: 12
// run: otrn run %s --target=trn2 --lnc=1 --cache=off --check --output=%t/a && otrn eval %s --output=%t/b && otrn run %s --cache=off --disable-pass=distribute --output=%t/c
// run: otrn eval %S/data/distribute_same.mlir --input=%t/a/result_0.npy,%t/b/result_0.npy
// run: otrn eval %S/data/distribute_same.mlir --input=%t/c/result_0.npy,%t/b/result_0.npy
module @jit_main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<65536xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<3> : tensor<i32>
    %c_0 = stablehlo.constant dense<32> : tensor<i32>
    %0 = stablehlo.shift_right_logical %c, %c_0 : tensor<i32>
    %1 = stablehlo.convert %0 : (tensor<i32>) -> tensor<ui32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<ui32>) -> tensor<1xui32>
    %c_1 = stablehlo.constant dense<-1> : tensor<i32>
    %3 = stablehlo.and %c, %c_1 : tensor<i32>
    %4 = stablehlo.convert %3 : (tensor<i32>) -> tensor<ui32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<ui32>) -> tensor<1xui32>
    %6 = stablehlo.concatenate %2, %5, dim = 0 : (tensor<1xui32>, tensor<1xui32>) -> tensor<2xui32>
    %7 = stablehlo.concatenate %6, %6, dim = 0 : (tensor<2xui32>, tensor<2xui32>) -> tensor<4xui32>
    %8 = stablehlo.iota dim = 0 : tensor<16384xf32>
    %cst = stablehlo.constant dense<3.700000e-01> : tensor<f32>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16384xf32>
    %10 = stablehlo.multiply %8, %9 : tensor<16384xf32>
    %11 = stablehlo.sine %10 : tensor<16384xf32>
    %12 = stablehlo.reshape %11 : (tensor<16384xf32>) -> tensor<1x256x2x32xf32>
    %13 = stablehlo.iota dim = 0 : tensor<16384xf32>
    %cst_2 = stablehlo.constant dense<4.800000e-01> : tensor<f32>
    %14 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16384xf32>
    %15 = stablehlo.multiply %13, %14 : tensor<16384xf32>
    %16 = stablehlo.sine %15 : tensor<16384xf32>
    %17 = stablehlo.reshape %16 : (tensor<16384xf32>) -> tensor<1x256x2x32xf32>
    %18 = stablehlo.iota dim = 0 : tensor<16384xf32>
    %cst_3 = stablehlo.constant dense<5.900000e-01> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<16384xf32>
    %20 = stablehlo.multiply %18, %19 : tensor<16384xf32>
    %21 = stablehlo.sine %20 : tensor<16384xf32>
    %22 = stablehlo.reshape %21 : (tensor<16384xf32>) -> tensor<1x256x2x32xf32>
    %23 = stablehlo.dot_general %12, %17, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x256x2x32xf32>, tensor<1x256x2x32xf32>) -> tensor<1x2x256x256xf32>
    %cst_4 = stablehlo.constant dense<5.65685415> : tensor<f32>
    %24 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x2x256x256xf32>
    %25 = stablehlo.divide %23, %24 : tensor<1x2x256x256xf32>
    %cst_5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %26 = stablehlo.reduce(%25 init: %cst_5) applies stablehlo.maximum across dimensions = [3] : (tensor<1x2x256x256xf32>, tensor<f32>) -> tensor<1x2x256xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<1x2x256xf32>
    %28 = stablehlo.maximum %27, %26 : tensor<1x2x256xf32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [0, 1, 2] : (tensor<1x2x256xf32>) -> tensor<1x2x256x1xf32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [0, 1, 2, 3] : (tensor<1x2x256x1xf32>) -> tensor<1x2x256x256xf32>
    %31 = stablehlo.subtract %25, %30 : tensor<1x2x256x256xf32>
    %32 = stablehlo.exponential %31 : tensor<1x2x256x256xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %33 = stablehlo.reduce(%32 init: %cst_7) applies stablehlo.add across dimensions = [3] : (tensor<1x2x256x256xf32>, tensor<f32>) -> tensor<1x2x256xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1, 2] : (tensor<1x2x256xf32>) -> tensor<1x2x256x1xf32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [0, 1, 2, 3] : (tensor<1x2x256x1xf32>) -> tensor<1x2x256x256xf32>
    %36 = stablehlo.divide %32, %35 : tensor<1x2x256x256xf32>
    %37 = stablehlo.multiply %34, %34 : tensor<1x2x256x1xf32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %38 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<1x2x256x1xf32>
    %39 = stablehlo.divide %38, %37 : tensor<1x2x256x1xf32>
    %cst_9 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %40 = call @_bernoulli(%7, %cst_9) : (tensor<4xui32>, tensor<f32>) -> tensor<1x2x256x256xi1>
    %cst_10 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %41 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<1x2x256x256xf32>
    %42 = stablehlo.divide %36, %41 : tensor<1x2x256x256xf32>
    %c_11 = stablehlo.constant dense<0> : tensor<i32>
    %43 = call @_where(%40, %42, %c_11) : (tensor<1x2x256x256xi1>, tensor<1x2x256x256xf32>, tensor<i32>) -> tensor<1x2x256x256xf32>
    %44 = stablehlo.dot_general %22, %43, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x256x2x32xf32>, tensor<1x2x256x256xf32>) -> tensor<1x2x32x256xf32>
    %45 = stablehlo.transpose %44, dims = [0, 3, 1, 2] : (tensor<1x2x32x256xf32>) -> tensor<1x256x2x32xf32>
    %46 = stablehlo.iota dim = 0 : tensor<16384xf32>
    %cst_12 = stablehlo.constant dense<0.699999988> : tensor<f32>
    %47 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<16384xf32>
    %48 = stablehlo.multiply %46, %47 : tensor<16384xf32>
    %49 = stablehlo.sine %48 : tensor<16384xf32>
    %50 = stablehlo.reshape %49 : (tensor<16384xf32>) -> tensor<1x256x2x32xf32>
    %51 = stablehlo.transpose %50, dims = [0, 2, 3, 1] : (tensor<1x256x2x32xf32>) -> tensor<1x2x32x256xf32>
    %52 = stablehlo.dot_general %51, %22, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x2x32x256xf32>, tensor<1x256x2x32xf32>) -> tensor<1x2x256x256xf32>
    %53 = stablehlo.dot_general %51, %43, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<1x2x32x256xf32>, tensor<1x2x256x256xf32>) -> tensor<1x2x32x256xf32>
    %54 = stablehlo.transpose %53, dims = [0, 3, 1, 2] : (tensor<1x2x32x256xf32>) -> tensor<1x256x2x32xf32>
    %55 = call @_where_0(%40, %52) : (tensor<1x2x256x256xi1>, tensor<1x2x256x256xf32>) -> tensor<1x2x256x256xf32>
    %cst_13 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %56 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<1x2x256x256xf32>
    %57 = stablehlo.divide %55, %56 : tensor<1x2x256x256xf32>
    %58 = stablehlo.broadcast_in_dim %39, dims = [0, 1, 2, 3] : (tensor<1x2x256x1xf32>) -> tensor<1x2x256x256xf32>
    %59 = stablehlo.multiply %57, %58 : tensor<1x2x256x256xf32>
    %60 = stablehlo.multiply %59, %32 : tensor<1x2x256x256xf32>
    %cst_14 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %61 = stablehlo.reduce(%60 init: %cst_14) applies stablehlo.add across dimensions = [3] : (tensor<1x2x256x256xf32>, tensor<f32>) -> tensor<1x2x256xf32>
    %62 = stablehlo.reshape %61 : (tensor<1x2x256xf32>) -> tensor<1x2x256x1xf32>
    %63 = stablehlo.negate %62 : tensor<1x2x256x1xf32>
    %64 = stablehlo.broadcast_in_dim %34, dims = [0, 1, 2, 3] : (tensor<1x2x256x1xf32>) -> tensor<1x2x256x256xf32>
    %65 = stablehlo.divide %57, %64 : tensor<1x2x256x256xf32>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %66 = stablehlo.reduce(%63 init: %cst_15) applies stablehlo.add across dimensions = [0, 3] : (tensor<1x2x256x1xf32>, tensor<f32>) -> tensor<2x256xf32>
    %67 = stablehlo.broadcast_in_dim %66, dims = [1, 2] : (tensor<2x256xf32>) -> tensor<1x2x256xf32>
    %68 = stablehlo.broadcast_in_dim %67, dims = [0, 1, 2] : (tensor<1x2x256xf32>) -> tensor<1x2x256x256xf32>
    %69 = stablehlo.add %65, %68 : tensor<1x2x256x256xf32>
    %70 = stablehlo.multiply %69, %32 : tensor<1x2x256x256xf32>
    %cst_16 = stablehlo.constant dense<5.65685415> : tensor<f32>
    %71 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<1x2x256x256xf32>
    %72 = stablehlo.divide %70, %71 : tensor<1x2x256x256xf32>
    %73 = stablehlo.dot_general %72, %12, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x2x256x256xf32>, tensor<1x256x2x32xf32>) -> tensor<1x2x256x32xf32>
    %74 = stablehlo.transpose %73, dims = [0, 2, 1, 3] : (tensor<1x2x256x32xf32>) -> tensor<1x256x2x32xf32>
    %75 = stablehlo.dot_general %72, %17, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x2x256x256xf32>, tensor<1x256x2x32xf32>) -> tensor<1x2x256x32xf32>
    %76 = stablehlo.transpose %75, dims = [0, 2, 1, 3] : (tensor<1x2x256x32xf32>) -> tensor<1x256x2x32xf32>
    %77 = stablehlo.reshape %45 : (tensor<1x256x2x32xf32>) -> tensor<16384xf32>
    %78 = stablehlo.reshape %76 : (tensor<1x256x2x32xf32>) -> tensor<16384xf32>
    %79 = stablehlo.reshape %74 : (tensor<1x256x2x32xf32>) -> tensor<16384xf32>
    %80 = stablehlo.reshape %54 : (tensor<1x256x2x32xf32>) -> tensor<16384xf32>
    %81 = stablehlo.concatenate %77, %78, %79, %80, dim = 0 : (tensor<16384xf32>, tensor<16384xf32>, tensor<16384xf32>, tensor<16384xf32>) -> tensor<65536xf32>
    return %81 : tensor<65536xf32>
  }
  func.func private @_bernoulli(%arg0: tensor<4xui32>, %arg1: tensor<f32>) -> tensor<1x2x256x256xi1> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = call @_uniform(%arg0, %cst, %cst_0) : (tensor<4xui32>, tensor<f32>, tensor<f32>) -> tensor<1x2x256x256xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1x2x256x256xf32>
    %2 = stablehlo.compare LT, %0, %1, FLOAT : (tensor<1x2x256x256xf32>, tensor<1x2x256x256xf32>) -> tensor<1x2x256x256xi1>
    return %2 : tensor<1x2x256x256xi1>
  }
  func.func private @_uniform(%arg0: tensor<4xui32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<1x2x256x256xf32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.convert %arg2 : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x1x1x1xf32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<1x1x1x1xf32>
    %4 = stablehlo.reshape %arg0 : (tensor<4xui32>) -> tensor<2x2xui32>
    %5 = stablehlo.bitcast_convert %4 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state, %output = stablehlo.rng_bit_generator %5, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<1x2x256x256xui32>)
    %6 = stablehlo.bitcast_convert %output_state : (tensor<2xui64>) -> tensor<2x2xui32>
    %7 = stablehlo.reshape %6 : (tensor<2x2xui32>) -> tensor<4xui32>
    %c = stablehlo.constant dense<9> : tensor<ui32>
    %8 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui32>) -> tensor<1x2x256x256xui32>
    %9 = stablehlo.shift_right_logical %output, %8 : tensor<1x2x256x256xui32>
    %c_0 = stablehlo.constant dense<1065353216> : tensor<ui32>
    %10 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui32>) -> tensor<1x2x256x256xui32>
    %11 = stablehlo.or %9, %10 : tensor<1x2x256x256xui32>
    %12 = stablehlo.bitcast_convert %11 : (tensor<1x2x256x256xui32>) -> tensor<1x2x256x256xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x2x256x256xf32>
    %14 = stablehlo.subtract %12, %13 : tensor<1x2x256x256xf32>
    %15 = stablehlo.subtract %3, %2 : tensor<1x1x1x1xf32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xf32>) -> tensor<1x2x256x256xf32>
    %17 = stablehlo.multiply %14, %16 : tensor<1x2x256x256xf32>
    %18 = stablehlo.broadcast_in_dim %2, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xf32>) -> tensor<1x2x256x256xf32>
    %19 = stablehlo.add %17, %18 : tensor<1x2x256x256xf32>
    %20 = stablehlo.broadcast_in_dim %2, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xf32>) -> tensor<1x2x256x256xf32>
    %21 = stablehlo.maximum %20, %19 : tensor<1x2x256x256xf32>
    return %21 : tensor<1x2x256x256xf32>
  }
  func.func private @_where(%arg0: tensor<1x2x256x256xi1>, %arg1: tensor<1x2x256x256xf32>, %arg2: tensor<i32>) -> tensor<1x2x256x256xf32> {
    %0 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x2x256x256xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<1x2x256x256xi1>, tensor<1x2x256x256xf32>
    return %2 : tensor<1x2x256x256xf32>
  }
  func.func private @_where_0(%arg0: tensor<1x2x256x256xi1>, %arg1: tensor<1x2x256x256xf32>) -> tensor<1x2x256x256xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x2x256x256xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<1x2x256x256xi1>, tensor<1x2x256x256xf32>
    return %1 : tensor<1x2x256x256xf32>
  }
}
