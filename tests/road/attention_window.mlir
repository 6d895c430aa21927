// Attention in a window: a causal mask joined with another by `and`. What the causal one masks is left out where it becomes -inf (pass/mask.c). With -1e9 a row
// that both leave nothing of looks at all columns: keys before the fortieth are padding, and rows before it see every score.
// run: otrn compile %s --cache=off -o %t/a.otrn --dump=tile > %t/tile && grep -c 'tensor: matmul' %t/tile
// expect: 996
// run: otrn run %t/a.otrn --check --output=%t/a && otrn eval %s --output=%t/b
// run: otrn eval %S/data/attention_window_same.mlir --input=%t/a/result_0.npy,%t/a/result_1.npy,%t/a/result_2.npy,%t/a/result_3.npy,%t/a/result_4.npy,%t/a/result_5.npy,%t/a/result_6.npy,%t/a/result_7.npy,%t/a/result_8.npy,%t/a/result_9.npy,%t/a/result_10.npy,%t/a/result_11.npy,%t/b/result_0.npy,%t/b/result_1.npy,%t/b/result_2.npy,%t/b/result_3.npy,%t/b/result_4.npy,%t/b/result_5.npy,%t/b/result_6.npy,%t/b/result_7.npy,%t/b/result_8.npy,%t/b/result_9.npy,%t/b/result_10.npy,%t/b/result_11.npy
module @jit_main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<1x1100x32xf32> {jax.result_info = "result[0]"}, tensor<1x1100x32xf32> {jax.result_info = "result[1]"}, tensor<1x1100x32xf32> {jax.result_info = "result[2]"}, tensor<1x1100x32xf32> {jax.result_info = "result[3]"}, tensor<1x1100x32xf32> {jax.result_info = "result[4]"}, tensor<1x1100x32xf32> {jax.result_info = "result[5]"}, tensor<1x1100x32xf32> {jax.result_info = "result[6]"}, tensor<1x1100x32xf32> {jax.result_info = "result[7]"}, tensor<1x1100x32xf32> {jax.result_info = "result[8]"}, tensor<1x1100x32xf32> {jax.result_info = "result[9]"}, tensor<1x1100x32xf32> {jax.result_info = "result[10]"}, tensor<1x1100x32xf32> {jax.result_info = "result[11]"}) {
    %0 = stablehlo.iota dim = 0 : tensor<35200xf32>
    %cst = stablehlo.constant dense<3.700000e-01> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<35200xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<35200xf32>
    %3 = stablehlo.sine %2 : tensor<35200xf32>
    %4 = stablehlo.reshape %3 : (tensor<35200xf32>) -> tensor<1x1100x32xf32>
    %5 = stablehlo.iota dim = 0 : tensor<35200xf32>
    %cst_0 = stablehlo.constant dense<4.800000e-01> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<35200xf32>
    %7 = stablehlo.multiply %5, %6 : tensor<35200xf32>
    %8 = stablehlo.sine %7 : tensor<35200xf32>
    %9 = stablehlo.reshape %8 : (tensor<35200xf32>) -> tensor<1x1100x32xf32>
    %10 = stablehlo.iota dim = 0 : tensor<35200xf32>
    %cst_1 = stablehlo.constant dense<5.900000e-01> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<35200xf32>
    %12 = stablehlo.multiply %10, %11 : tensor<35200xf32>
    %13 = stablehlo.sine %12 : tensor<35200xf32>
    %14 = stablehlo.reshape %13 : (tensor<35200xf32>) -> tensor<1x1100x32xf32>
    %15 = stablehlo.dot_general %4, %9, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> tensor<1x1100x1100xf32>
    %cst_2 = stablehlo.constant dense<0.144337565> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x1100x1100xf32>
    %17 = stablehlo.multiply %15, %16 : tensor<1x1100x1100xf32>
    %18 = stablehlo.iota dim = 0 : tensor<1100xi32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0] : (tensor<1100xi32>) -> tensor<1100x1xi32>
    %20 = stablehlo.iota dim = 0 : tensor<1100xi32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [1] : (tensor<1100xi32>) -> tensor<1x1100xi32>
    %22 = stablehlo.broadcast_in_dim %19, dims = [0, 1] : (tensor<1100x1xi32>) -> tensor<1100x1100xi32>
    %23 = stablehlo.broadcast_in_dim %21, dims = [0, 1] : (tensor<1x1100xi32>) -> tensor<1100x1100xi32>
    %24 = stablehlo.subtract %22, %23 : tensor<1100x1100xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %25 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1100x1100xi32>
    %26 = stablehlo.compare GE, %24, %25, SIGNED : (tensor<1100x1100xi32>, tensor<1100x1100xi32>) -> tensor<1100x1100xi1>
    %c_3 = stablehlo.constant dense<150> : tensor<i32>
    %27 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<1100x1100xi32>
    %28 = stablehlo.compare LT, %24, %27, SIGNED : (tensor<1100x1100xi32>, tensor<1100x1100xi32>) -> tensor<1100x1100xi1>
    %29 = stablehlo.and %26, %28 : tensor<1100x1100xi1>
    %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %30:2 = call @_where(%29, %17, %cst_4) : (tensor<1100x1100xi1>, tensor<1x1100x1100xf32>, tensor<f32>) -> (tensor<1x1100x1100xf32>, tensor<1x1100x1100xi1>)
    %cst_5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %31 = stablehlo.reduce(%30#0 init: %cst_5) applies stablehlo.maximum across dimensions = [2] : (tensor<1x1100x1100xf32>, tensor<f32>) -> tensor<1x1100xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %32 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<1x1100xf32>
    %33 = stablehlo.maximum %32, %31 : tensor<1x1100xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1] : (tensor<1x1100xf32>) -> tensor<1x1100x1xf32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [0, 1, 2] : (tensor<1x1100x1xf32>) -> tensor<1x1100x1100xf32>
    %36 = stablehlo.subtract %30#0, %35 : tensor<1x1100x1100xf32>
    %37 = stablehlo.exponential %36 : tensor<1x1100x1100xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %38 = stablehlo.reduce(%37 init: %cst_7) applies stablehlo.add across dimensions = [2] : (tensor<1x1100x1100xf32>, tensor<f32>) -> tensor<1x1100xf32>
    %39 = stablehlo.broadcast_in_dim %38, dims = [0, 1] : (tensor<1x1100xf32>) -> tensor<1x1100x1xf32>
    %40 = stablehlo.broadcast_in_dim %39, dims = [0, 1, 2] : (tensor<1x1100x1xf32>) -> tensor<1x1100x1100xf32>
    %41 = stablehlo.divide %37, %40 : tensor<1x1100x1100xf32>
    %42 = stablehlo.multiply %39, %39 : tensor<1x1100x1xf32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %43 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<1x1100x1xf32>
    %44 = stablehlo.divide %43, %42 : tensor<1x1100x1xf32>
    %45 = stablehlo.dot_general %41, %14, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x1100xf32>, tensor<1x1100x32xf32>) -> tensor<1x1100x32xf32>
    %cst_9 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %46 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<1x1100x32xf32>
    %47 = stablehlo.multiply %45, %46 : tensor<1x1100x32xf32>
    %48 = stablehlo.cosine %47 : tensor<1x1100x32xf32>
    %49 = stablehlo.dot_general %48, %41, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x32xf32>, tensor<1x1100x1100xf32>) -> tensor<1x32x1100xf32>
    %50 = stablehlo.transpose %49, dims = [0, 2, 1] : (tensor<1x32x1100xf32>) -> tensor<1x1100x32xf32>
    %51 = stablehlo.dot_general %48, %14, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> tensor<1x1100x1100xf32>
    %52 = stablehlo.broadcast_in_dim %44, dims = [0, 1, 2] : (tensor<1x1100x1xf32>) -> tensor<1x1100x1100xf32>
    %53 = stablehlo.multiply %51, %52 : tensor<1x1100x1100xf32>
    %54 = stablehlo.multiply %53, %37 : tensor<1x1100x1100xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %55 = stablehlo.reduce(%54 init: %cst_10) applies stablehlo.add across dimensions = [2] : (tensor<1x1100x1100xf32>, tensor<f32>) -> tensor<1x1100xf32>
    %56 = stablehlo.reshape %55 : (tensor<1x1100xf32>) -> tensor<1x1100x1xf32>
    %57 = stablehlo.negate %56 : tensor<1x1100x1xf32>
    %58 = stablehlo.broadcast_in_dim %39, dims = [0, 1, 2] : (tensor<1x1100x1xf32>) -> tensor<1x1100x1100xf32>
    %59 = stablehlo.divide %51, %58 : tensor<1x1100x1100xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %60 = stablehlo.reduce(%57 init: %cst_11) applies stablehlo.add across dimensions = [0, 2] : (tensor<1x1100x1xf32>, tensor<f32>) -> tensor<1100xf32>
    %61 = stablehlo.broadcast_in_dim %60, dims = [1] : (tensor<1100xf32>) -> tensor<1x1100xf32>
    %62 = stablehlo.broadcast_in_dim %61, dims = [0, 1] : (tensor<1x1100xf32>) -> tensor<1x1100x1100xf32>
    %63 = stablehlo.add %59, %62 : tensor<1x1100x1100xf32>
    %64 = stablehlo.multiply %63, %37 : tensor<1x1100x1100xf32>
    %65 = call @_where_0(%30#1, %64) : (tensor<1x1100x1100xi1>, tensor<1x1100x1100xf32>) -> tensor<1x1100x1100xf32>
    %cst_12 = stablehlo.constant dense<0.144337565> : tensor<f32>
    %66 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<1x1100x1100xf32>
    %67 = stablehlo.multiply %65, %66 : tensor<1x1100x1100xf32>
    %68 = stablehlo.dot_general %67, %4, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x1100xf32>, tensor<1x1100x32xf32>) -> tensor<1x1100x32xf32>
    %69 = stablehlo.dot_general %67, %9, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x1100xf32>, tensor<1x1100x32xf32>) -> tensor<1x1100x32xf32>
    %70 = stablehlo.dot_general %4, %9, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> tensor<1x1100x1100xf32>
    %cst_13 = stablehlo.constant dense<0.144337565> : tensor<f32>
    %71 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<1x1100x1100xf32>
    %72 = stablehlo.multiply %70, %71 : tensor<1x1100x1100xf32>
    %73 = stablehlo.iota dim = 0 : tensor<1100xi32>
    %74 = stablehlo.broadcast_in_dim %73, dims = [0] : (tensor<1100xi32>) -> tensor<1100x1xi32>
    %75 = stablehlo.iota dim = 0 : tensor<1100xi32>
    %76 = stablehlo.broadcast_in_dim %75, dims = [1] : (tensor<1100xi32>) -> tensor<1x1100xi32>
    %77 = stablehlo.broadcast_in_dim %74, dims = [0, 1] : (tensor<1100x1xi32>) -> tensor<1100x1100xi32>
    %78 = stablehlo.broadcast_in_dim %76, dims = [0, 1] : (tensor<1x1100xi32>) -> tensor<1100x1100xi32>
    %79 = stablehlo.subtract %77, %78 : tensor<1100x1100xi32>
    %c_14 = stablehlo.constant dense<0> : tensor<i32>
    %80 = stablehlo.broadcast_in_dim %c_14, dims = [] : (tensor<i32>) -> tensor<1100x1100xi32>
    %81 = stablehlo.compare GE, %79, %80, SIGNED : (tensor<1100x1100xi32>, tensor<1100x1100xi32>) -> tensor<1100x1100xi1>
    %c_15 = stablehlo.constant dense<150> : tensor<i32>
    %82 = stablehlo.broadcast_in_dim %c_15, dims = [] : (tensor<i32>) -> tensor<1100x1100xi32>
    %83 = stablehlo.compare LT, %79, %82, SIGNED : (tensor<1100x1100xi32>, tensor<1100x1100xi32>) -> tensor<1100x1100xi1>
    %84 = stablehlo.and %81, %83 : tensor<1100x1100xi1>
    %cst_16 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %85:2 = call @_where(%84, %72, %cst_16) : (tensor<1100x1100xi1>, tensor<1x1100x1100xf32>, tensor<f32>) -> (tensor<1x1100x1100xf32>, tensor<1x1100x1100xi1>)
    %cst_17 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %86 = stablehlo.reduce(%85#0 init: %cst_17) applies stablehlo.maximum across dimensions = [2] : (tensor<1x1100x1100xf32>, tensor<f32>) -> tensor<1x1100xf32>
    %cst_18 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %87 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<1x1100xf32>
    %88 = stablehlo.maximum %87, %86 : tensor<1x1100xf32>
    %89 = stablehlo.broadcast_in_dim %88, dims = [0, 1] : (tensor<1x1100xf32>) -> tensor<1x1100x1xf32>
    %90 = stablehlo.broadcast_in_dim %89, dims = [0, 1, 2] : (tensor<1x1100x1xf32>) -> tensor<1x1100x1100xf32>
    %91 = stablehlo.subtract %85#0, %90 : tensor<1x1100x1100xf32>
    %92 = stablehlo.exponential %91 : tensor<1x1100x1100xf32>
    %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %93 = stablehlo.reduce(%92 init: %cst_19) applies stablehlo.add across dimensions = [2] : (tensor<1x1100x1100xf32>, tensor<f32>) -> tensor<1x1100xf32>
    %94 = stablehlo.broadcast_in_dim %93, dims = [0, 1] : (tensor<1x1100xf32>) -> tensor<1x1100x1xf32>
    %95 = stablehlo.broadcast_in_dim %94, dims = [0, 1, 2] : (tensor<1x1100x1xf32>) -> tensor<1x1100x1100xf32>
    %96 = stablehlo.divide %92, %95 : tensor<1x1100x1100xf32>
    %97 = stablehlo.multiply %94, %94 : tensor<1x1100x1xf32>
    %cst_20 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %98 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<1x1100x1xf32>
    %99 = stablehlo.divide %98, %97 : tensor<1x1100x1xf32>
    %100 = stablehlo.dot_general %96, %14, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x1100xf32>, tensor<1x1100x32xf32>) -> tensor<1x1100x32xf32>
    %cst_21 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %101 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<1x1100x32xf32>
    %102 = stablehlo.multiply %100, %101 : tensor<1x1100x32xf32>
    %103 = stablehlo.cosine %102 : tensor<1x1100x32xf32>
    %104 = stablehlo.dot_general %103, %96, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x32xf32>, tensor<1x1100x1100xf32>) -> tensor<1x32x1100xf32>
    %105 = stablehlo.transpose %104, dims = [0, 2, 1] : (tensor<1x32x1100xf32>) -> tensor<1x1100x32xf32>
    %106 = stablehlo.dot_general %103, %14, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> tensor<1x1100x1100xf32>
    %107 = stablehlo.broadcast_in_dim %99, dims = [0, 1, 2] : (tensor<1x1100x1xf32>) -> tensor<1x1100x1100xf32>
    %108 = stablehlo.multiply %106, %107 : tensor<1x1100x1100xf32>
    %109 = stablehlo.multiply %108, %92 : tensor<1x1100x1100xf32>
    %cst_22 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %110 = stablehlo.reduce(%109 init: %cst_22) applies stablehlo.add across dimensions = [2] : (tensor<1x1100x1100xf32>, tensor<f32>) -> tensor<1x1100xf32>
    %111 = stablehlo.reshape %110 : (tensor<1x1100xf32>) -> tensor<1x1100x1xf32>
    %112 = stablehlo.negate %111 : tensor<1x1100x1xf32>
    %113 = stablehlo.broadcast_in_dim %94, dims = [0, 1, 2] : (tensor<1x1100x1xf32>) -> tensor<1x1100x1100xf32>
    %114 = stablehlo.divide %106, %113 : tensor<1x1100x1100xf32>
    %cst_23 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %115 = stablehlo.reduce(%112 init: %cst_23) applies stablehlo.add across dimensions = [0, 2] : (tensor<1x1100x1xf32>, tensor<f32>) -> tensor<1100xf32>
    %116 = stablehlo.broadcast_in_dim %115, dims = [1] : (tensor<1100xf32>) -> tensor<1x1100xf32>
    %117 = stablehlo.broadcast_in_dim %116, dims = [0, 1] : (tensor<1x1100xf32>) -> tensor<1x1100x1100xf32>
    %118 = stablehlo.add %114, %117 : tensor<1x1100x1100xf32>
    %119 = stablehlo.multiply %118, %92 : tensor<1x1100x1100xf32>
    %120 = call @_where_0(%85#1, %119) : (tensor<1x1100x1100xi1>, tensor<1x1100x1100xf32>) -> tensor<1x1100x1100xf32>
    %cst_24 = stablehlo.constant dense<0.144337565> : tensor<f32>
    %121 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<1x1100x1100xf32>
    %122 = stablehlo.multiply %120, %121 : tensor<1x1100x1100xf32>
    %123 = stablehlo.dot_general %122, %4, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x1100xf32>, tensor<1x1100x32xf32>) -> tensor<1x1100x32xf32>
    %124 = stablehlo.dot_general %122, %9, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x1100xf32>, tensor<1x1100x32xf32>) -> tensor<1x1100x32xf32>
    %125 = stablehlo.dot_general %4, %9, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> tensor<1x1100x1100xf32>
    %cst_25 = stablehlo.constant dense<0.144337565> : tensor<f32>
    %126 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<1x1100x1100xf32>
    %127 = stablehlo.multiply %125, %126 : tensor<1x1100x1100xf32>
    %128 = stablehlo.iota dim = 0 : tensor<1100xi32>
    %129 = stablehlo.broadcast_in_dim %128, dims = [0] : (tensor<1100xi32>) -> tensor<1100x1xi32>
    %130 = stablehlo.iota dim = 0 : tensor<1100xi32>
    %131 = stablehlo.broadcast_in_dim %130, dims = [1] : (tensor<1100xi32>) -> tensor<1x1100xi32>
    %132 = stablehlo.broadcast_in_dim %129, dims = [0, 1] : (tensor<1100x1xi32>) -> tensor<1100x1100xi32>
    %133 = stablehlo.broadcast_in_dim %131, dims = [0, 1] : (tensor<1x1100xi32>) -> tensor<1100x1100xi32>
    %134 = stablehlo.subtract %132, %133 : tensor<1100x1100xi32>
    %c_26 = stablehlo.constant dense<0> : tensor<i32>
    %135 = stablehlo.broadcast_in_dim %c_26, dims = [] : (tensor<i32>) -> tensor<1100x1100xi32>
    %136 = stablehlo.compare GE, %134, %135, SIGNED : (tensor<1100x1100xi32>, tensor<1100x1100xi32>) -> tensor<1100x1100xi1>
    %137 = stablehlo.iota dim = 0 : tensor<1100xi32>
    %138 = stablehlo.convert %137 : (tensor<1100xi32>) -> tensor<1100xf32>
    %cst_27 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %139 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<1100xf32>
    %140 = stablehlo.multiply %138, %139 : tensor<1100xf32>
    %141 = stablehlo.sine %140 : tensor<1100xf32>
    %cst_28 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %142 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<1100xf32>
    %143 = stablehlo.compare GT, %141, %142, FLOAT : (tensor<1100xf32>, tensor<1100xf32>) -> tensor<1100xi1>
    %144 = stablehlo.broadcast_in_dim %143, dims = [1] : (tensor<1100xi1>) -> tensor<1x1100xi1>
    %c_29 = stablehlo.constant dense<false> : tensor<i1>
    %145 = stablehlo.broadcast_in_dim %c_29, dims = [] : (tensor<i1>) -> tensor<1x1100xi1>
    %146 = stablehlo.compare NE, %144, %145, UNSIGNED : (tensor<1x1100xi1>, tensor<1x1100xi1>) -> tensor<1x1100xi1>
    %147 = stablehlo.convert %146 : tensor<1x1100xi1>
    %148 = stablehlo.broadcast_in_dim %147, dims = [0, 1] : (tensor<1x1100xi1>) -> tensor<1100x1100xi1>
    %149 = stablehlo.and %136, %148 : tensor<1100x1100xi1>
    %150 = stablehlo.iota dim = 0 : tensor<1100xi32>
    %c_30 = stablehlo.constant dense<40> : tensor<i32>
    %151 = stablehlo.broadcast_in_dim %c_30, dims = [] : (tensor<i32>) -> tensor<1100xi32>
    %152 = stablehlo.compare GE, %150, %151, SIGNED : (tensor<1100xi32>, tensor<1100xi32>) -> tensor<1100xi1>
    %153 = stablehlo.broadcast_in_dim %152, dims = [1] : (tensor<1100xi1>) -> tensor<1x1100xi1>
    %154 = stablehlo.broadcast_in_dim %153, dims = [0, 1] : (tensor<1x1100xi1>) -> tensor<1100x1100xi1>
    %155 = stablehlo.and %149, %154 : tensor<1100x1100xi1>
    %cst_31 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %156:2 = call @_where(%155, %127, %cst_31) : (tensor<1100x1100xi1>, tensor<1x1100x1100xf32>, tensor<f32>) -> (tensor<1x1100x1100xf32>, tensor<1x1100x1100xi1>)
    %cst_32 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %157 = stablehlo.reduce(%156#0 init: %cst_32) applies stablehlo.maximum across dimensions = [2] : (tensor<1x1100x1100xf32>, tensor<f32>) -> tensor<1x1100xf32>
    %cst_33 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %158 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<1x1100xf32>
    %159 = stablehlo.maximum %158, %157 : tensor<1x1100xf32>
    %160 = stablehlo.broadcast_in_dim %159, dims = [0, 1] : (tensor<1x1100xf32>) -> tensor<1x1100x1xf32>
    %161 = stablehlo.broadcast_in_dim %160, dims = [0, 1, 2] : (tensor<1x1100x1xf32>) -> tensor<1x1100x1100xf32>
    %162 = stablehlo.subtract %156#0, %161 : tensor<1x1100x1100xf32>
    %163 = stablehlo.exponential %162 : tensor<1x1100x1100xf32>
    %cst_34 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %164 = stablehlo.reduce(%163 init: %cst_34) applies stablehlo.add across dimensions = [2] : (tensor<1x1100x1100xf32>, tensor<f32>) -> tensor<1x1100xf32>
    %165 = stablehlo.broadcast_in_dim %164, dims = [0, 1] : (tensor<1x1100xf32>) -> tensor<1x1100x1xf32>
    %166 = stablehlo.broadcast_in_dim %165, dims = [0, 1, 2] : (tensor<1x1100x1xf32>) -> tensor<1x1100x1100xf32>
    %167 = stablehlo.divide %163, %166 : tensor<1x1100x1100xf32>
    %168 = stablehlo.multiply %165, %165 : tensor<1x1100x1xf32>
    %cst_35 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %169 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<1x1100x1xf32>
    %170 = stablehlo.divide %169, %168 : tensor<1x1100x1xf32>
    %171 = stablehlo.dot_general %167, %14, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x1100xf32>, tensor<1x1100x32xf32>) -> tensor<1x1100x32xf32>
    %cst_36 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %172 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<f32>) -> tensor<1x1100x32xf32>
    %173 = stablehlo.multiply %171, %172 : tensor<1x1100x32xf32>
    %174 = stablehlo.cosine %173 : tensor<1x1100x32xf32>
    %175 = stablehlo.dot_general %174, %167, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x32xf32>, tensor<1x1100x1100xf32>) -> tensor<1x32x1100xf32>
    %176 = stablehlo.transpose %175, dims = [0, 2, 1] : (tensor<1x32x1100xf32>) -> tensor<1x1100x32xf32>
    %177 = stablehlo.dot_general %174, %14, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> tensor<1x1100x1100xf32>
    %178 = stablehlo.broadcast_in_dim %170, dims = [0, 1, 2] : (tensor<1x1100x1xf32>) -> tensor<1x1100x1100xf32>
    %179 = stablehlo.multiply %177, %178 : tensor<1x1100x1100xf32>
    %180 = stablehlo.multiply %179, %163 : tensor<1x1100x1100xf32>
    %cst_37 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %181 = stablehlo.reduce(%180 init: %cst_37) applies stablehlo.add across dimensions = [2] : (tensor<1x1100x1100xf32>, tensor<f32>) -> tensor<1x1100xf32>
    %182 = stablehlo.reshape %181 : (tensor<1x1100xf32>) -> tensor<1x1100x1xf32>
    %183 = stablehlo.negate %182 : tensor<1x1100x1xf32>
    %184 = stablehlo.broadcast_in_dim %165, dims = [0, 1, 2] : (tensor<1x1100x1xf32>) -> tensor<1x1100x1100xf32>
    %185 = stablehlo.divide %177, %184 : tensor<1x1100x1100xf32>
    %cst_38 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %186 = stablehlo.reduce(%183 init: %cst_38) applies stablehlo.add across dimensions = [0, 2] : (tensor<1x1100x1xf32>, tensor<f32>) -> tensor<1100xf32>
    %187 = stablehlo.broadcast_in_dim %186, dims = [1] : (tensor<1100xf32>) -> tensor<1x1100xf32>
    %188 = stablehlo.broadcast_in_dim %187, dims = [0, 1] : (tensor<1x1100xf32>) -> tensor<1x1100x1100xf32>
    %189 = stablehlo.add %185, %188 : tensor<1x1100x1100xf32>
    %190 = stablehlo.multiply %189, %163 : tensor<1x1100x1100xf32>
    %191 = call @_where_0(%156#1, %190) : (tensor<1x1100x1100xi1>, tensor<1x1100x1100xf32>) -> tensor<1x1100x1100xf32>
    %cst_39 = stablehlo.constant dense<0.144337565> : tensor<f32>
    %192 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<1x1100x1100xf32>
    %193 = stablehlo.multiply %191, %192 : tensor<1x1100x1100xf32>
    %194 = stablehlo.dot_general %193, %4, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x1100xf32>, tensor<1x1100x32xf32>) -> tensor<1x1100x32xf32>
    %195 = stablehlo.dot_general %193, %9, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x1100xf32>, tensor<1x1100x32xf32>) -> tensor<1x1100x32xf32>
    return %45, %69, %68, %50, %100, %124, %123, %105, %171, %195, %194, %176 : tensor<1x1100x32xf32>, tensor<1x1100x32xf32>, tensor<1x1100x32xf32>, tensor<1x1100x32xf32>, tensor<1x1100x32xf32>, tensor<1x1100x32xf32>, tensor<1x1100x32xf32>, tensor<1x1100x32xf32>, tensor<1x1100x32xf32>, tensor<1x1100x32xf32>, tensor<1x1100x32xf32>, tensor<1x1100x32xf32>
  }
  func.func private @_where(%arg0: tensor<1100x1100xi1>, %arg1: tensor<1x1100x1100xf32>, %arg2: tensor<f32>) -> (tensor<1x1100x1100xf32>, tensor<1x1100x1100xi1>) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<1100x1100xi1>) -> tensor<1x1100x1100xi1>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1x1100x1100xf32>
    %2 = stablehlo.select %0, %arg1, %1 : tensor<1x1100x1100xi1>, tensor<1x1100x1100xf32>
    return %2, %0 : tensor<1x1100x1100xf32>, tensor<1x1100x1100xi1>
  }
  func.func private @_where_0(%arg0: tensor<1x1100x1100xi1>, %arg1: tensor<1x1100x1100xf32>) -> tensor<1x1100x1100xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x1100x1100xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<1x1100x1100xi1>, tensor<1x1100x1100xf32>
    return %1 : tensor<1x1100x1100xf32>
  }
}
