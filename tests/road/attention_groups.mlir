// Attention with fewer heads of keys than of queries, and its gradients: with the groups as a dimension of the products, and mapped over
// them (pass/turns.c, pass/turns_sink.c, pass/early.c). No transpose of the scores is left: all of it is done in the products' own order.
// The chip agrees with the evaluator, also without the passes and on another chip.
// run: otrn compile %s --cache=off --dump=dce -o %t/a.otrn > %t/dce && ! grep -E 'transpose.*256x256|transpose.*192x192' %t/dce && echo none
// expect: none
// run: otrn run %t/a.otrn --check --output=%t/a && otrn eval %s --output=%t/b && otrn run %s --target=trn1 --cache=off --disable-pass=turns,early --output=%t/c
// run: otrn eval %S/data/attention_groups_same.mlir --input=%t/a/result_0.npy,%t/a/result_1.npy,%t/a/result_2.npy,%t/a/result_3.npy,%t/a/result_4.npy,%t/a/result_5.npy,%t/a/result_6.npy,%t/a/result_7.npy,%t/a/result_8.npy,%t/a/result_9.npy,%t/a/result_10.npy,%t/a/result_11.npy,%t/b/result_0.npy,%t/b/result_1.npy,%t/b/result_2.npy,%t/b/result_3.npy,%t/b/result_4.npy,%t/b/result_5.npy,%t/b/result_6.npy,%t/b/result_7.npy,%t/b/result_8.npy,%t/b/result_9.npy,%t/b/result_10.npy,%t/b/result_11.npy
// run: otrn eval %S/data/attention_groups_same.mlir --input=%t/c/result_0.npy,%t/c/result_1.npy,%t/c/result_2.npy,%t/c/result_3.npy,%t/c/result_4.npy,%t/c/result_5.npy,%t/c/result_6.npy,%t/c/result_7.npy,%t/c/result_8.npy,%t/c/result_9.npy,%t/c/result_10.npy,%t/c/result_11.npy,%t/b/result_0.npy,%t/b/result_1.npy,%t/b/result_2.npy,%t/b/result_3.npy,%t/b/result_4.npy,%t/b/result_5.npy,%t/b/result_6.npy,%t/b/result_7.npy,%t/b/result_8.npy,%t/b/result_9.npy,%t/b/result_10.npy,%t/b/result_11.npy
module {
  func.func public @main() -> (tensor<1x256x2x3x32xf32>, tensor<1x256x2x3x32xf32>, tensor<1x256x2x32xf32>, tensor<1x256x2x32xf32>, tensor<1x192x2x3x48xf32>, tensor<1x192x2x3x48xf32>, tensor<1x192x2x48xf32>, tensor<1x192x2x48xf32>, tensor<1x256x2x3x64xbf16>, tensor<1x256x2x3x64xbf16>, tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>) {
    %0 = stablehlo.iota dim = 0 : tensor<49152xf32>
    %cst = stablehlo.constant dense<3.700000e-01> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<49152xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<49152xf32>
    %3 = stablehlo.sine %2 : tensor<49152xf32>
    %4 = stablehlo.reshape %3 : (tensor<49152xf32>) -> tensor<1x256x2x3x32xf32>
    %5 = stablehlo.iota dim = 0 : tensor<16384xf32>
    %cst_0 = stablehlo.constant dense<4.800000e-01> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16384xf32>
    %7 = stablehlo.multiply %5, %6 : tensor<16384xf32>
    %8 = stablehlo.sine %7 : tensor<16384xf32>
    %9 = stablehlo.reshape %8 : (tensor<16384xf32>) -> tensor<1x256x2x32xf32>
    %10 = stablehlo.iota dim = 0 : tensor<16384xf32>
    %cst_1 = stablehlo.constant dense<5.900000e-01> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<16384xf32>
    %12 = stablehlo.multiply %10, %11 : tensor<16384xf32>
    %13 = stablehlo.sine %12 : tensor<16384xf32>
    %14 = stablehlo.reshape %13 : (tensor<16384xf32>) -> tensor<1x256x2x32xf32>
    %15 = stablehlo.dot_general %9, %4, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [4], precision = [DEFAULT, DEFAULT] : (tensor<1x256x2x32xf32>, tensor<1x256x2x3x32xf32>) -> tensor<1x2x256x256x3xf32>
    %16 = stablehlo.transpose %15, dims = [0, 1, 4, 3, 2] : (tensor<1x2x256x256x3xf32>) -> tensor<1x2x3x256x256xf32>
    %cst_2 = stablehlo.constant dense<1.700000e-01> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x2x3x256x256xf32>
    %18 = stablehlo.multiply %16, %17 : tensor<1x2x3x256x256xf32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %19 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<256x256xi1>
    %20 = call @tril(%19) : (tensor<256x256xi1>) -> tensor<256x256xi1>
    %cst_3 = stablehlo.constant dense<-1.000000e+30> : tensor<f32>
    %21:2 = call @_where(%20, %18, %cst_3) : (tensor<256x256xi1>, tensor<1x2x3x256x256xf32>, tensor<f32>) -> (tensor<1x2x3x256x256xf32>, tensor<1x2x3x256x256xi1>)
    %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %22 = stablehlo.reduce(%21#0 init: %cst_4) applies stablehlo.maximum across dimensions = [4] : (tensor<1x2x3x256x256xf32>, tensor<f32>) -> tensor<1x2x3x256xf32>
    %cst_5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x2x3x256xf32>
    %24 = stablehlo.maximum %23, %22 : tensor<1x2x3x256xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [0, 1, 2, 3] : (tensor<1x2x3x256xf32>) -> tensor<1x2x3x256x1xf32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0, 1, 2, 3, 4] : (tensor<1x2x3x256x1xf32>) -> tensor<1x2x3x256x256xf32>
    %27 = stablehlo.subtract %21#0, %26 : tensor<1x2x3x256x256xf32>
    %28 = stablehlo.exponential %27 : tensor<1x2x3x256x256xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %29 = stablehlo.reduce(%28 init: %cst_6) applies stablehlo.add across dimensions = [4] : (tensor<1x2x3x256x256xf32>, tensor<f32>) -> tensor<1x2x3x256xf32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [0, 1, 2, 3] : (tensor<1x2x3x256xf32>) -> tensor<1x2x3x256x1xf32>
    %31 = stablehlo.broadcast_in_dim %30, dims = [0, 1, 2, 3, 4] : (tensor<1x2x3x256x1xf32>) -> tensor<1x2x3x256x256xf32>
    %32 = stablehlo.divide %28, %31 : tensor<1x2x3x256x256xf32>
    %33 = stablehlo.multiply %30, %30 : tensor<1x2x3x256x1xf32>
    %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %34 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<1x2x3x256x1xf32>
    %35 = stablehlo.divide %34, %33 : tensor<1x2x3x256x1xf32>
    %36 = stablehlo.dot_general %14, %32, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<1x256x2x32xf32>, tensor<1x2x3x256x256xf32>) -> tensor<1x2x32x3x256xf32>
    %37 = stablehlo.transpose %36, dims = [0, 4, 1, 3, 2] : (tensor<1x2x32x3x256xf32>) -> tensor<1x256x2x3x32xf32>
    %38 = stablehlo.iota dim = 0 : tensor<49152xf32>
    %cst_8 = stablehlo.constant dense<0.699999988> : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<49152xf32>
    %40 = stablehlo.multiply %38, %39 : tensor<49152xf32>
    %41 = stablehlo.sine %40 : tensor<49152xf32>
    %42 = stablehlo.reshape %41 : (tensor<49152xf32>) -> tensor<1x256x2x3x32xf32>
    %43 = stablehlo.multiply %42, %37 : tensor<1x256x2x3x32xf32>
    %44 = stablehlo.transpose %43, dims = [0, 2, 4, 3, 1] : (tensor<1x256x2x3x32xf32>) -> tensor<1x2x32x3x256xf32>
    %45 = stablehlo.dot_general %44, %14, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x2x32x3x256xf32>, tensor<1x256x2x32xf32>) -> tensor<1x2x3x256x256xf32>
    %46 = stablehlo.dot_general %44, %32, batching_dims = [0, 1] x [0, 1], contracting_dims = [3, 4] x [2, 3], precision = [DEFAULT, DEFAULT] : (tensor<1x2x32x3x256xf32>, tensor<1x2x3x256x256xf32>) -> tensor<1x2x32x256xf32>
    %47 = stablehlo.transpose %46, dims = [0, 3, 1, 2] : (tensor<1x2x32x256xf32>) -> tensor<1x256x2x32xf32>
    %48 = stablehlo.broadcast_in_dim %35, dims = [0, 1, 2, 3, 4] : (tensor<1x2x3x256x1xf32>) -> tensor<1x2x3x256x256xf32>
    %49 = stablehlo.multiply %45, %48 : tensor<1x2x3x256x256xf32>
    %50 = stablehlo.multiply %49, %28 : tensor<1x2x3x256x256xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %51 = stablehlo.reduce(%50 init: %cst_9) applies stablehlo.add across dimensions = [4] : (tensor<1x2x3x256x256xf32>, tensor<f32>) -> tensor<1x2x3x256xf32>
    %52 = stablehlo.reshape %51 : (tensor<1x2x3x256xf32>) -> tensor<1x2x3x256x1xf32>
    %53 = stablehlo.negate %52 : tensor<1x2x3x256x1xf32>
    %54 = stablehlo.broadcast_in_dim %30, dims = [0, 1, 2, 3, 4] : (tensor<1x2x3x256x1xf32>) -> tensor<1x2x3x256x256xf32>
    %55 = stablehlo.divide %45, %54 : tensor<1x2x3x256x256xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %56 = stablehlo.reduce(%53 init: %cst_10) applies stablehlo.add across dimensions = [0, 4] : (tensor<1x2x3x256x1xf32>, tensor<f32>) -> tensor<2x3x256xf32>
    %57 = stablehlo.broadcast_in_dim %56, dims = [1, 2, 3] : (tensor<2x3x256xf32>) -> tensor<1x2x3x256xf32>
    %58 = stablehlo.broadcast_in_dim %57, dims = [0, 1, 2, 3] : (tensor<1x2x3x256xf32>) -> tensor<1x2x3x256x256xf32>
    %59 = stablehlo.add %55, %58 : tensor<1x2x3x256x256xf32>
    %60 = stablehlo.multiply %59, %28 : tensor<1x2x3x256x256xf32>
    %61 = call @_where_0(%21#1, %60) : (tensor<1x2x3x256x256xi1>, tensor<1x2x3x256x256xf32>) -> tensor<1x2x3x256x256xf32>
    %cst_11 = stablehlo.constant dense<1.700000e-01> : tensor<f32>
    %62 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<1x2x3x256x256xf32>
    %63 = stablehlo.multiply %61, %62 : tensor<1x2x3x256x256xf32>
    %64 = stablehlo.transpose %63, dims = [0, 1, 4, 3, 2] : (tensor<1x2x3x256x256xf32>) -> tensor<1x2x256x256x3xf32>
    %65 = stablehlo.dot_general %64, %9, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x2x256x256x3xf32>, tensor<1x256x2x32xf32>) -> tensor<1x2x256x3x32xf32>
    %66 = stablehlo.transpose %65, dims = [0, 2, 1, 3, 4] : (tensor<1x2x256x3x32xf32>) -> tensor<1x256x2x3x32xf32>
    %67 = stablehlo.dot_general %64, %4, batching_dims = [0, 1] x [0, 2], contracting_dims = [3, 4] x [1, 3], precision = [DEFAULT, DEFAULT] : (tensor<1x2x256x256x3xf32>, tensor<1x256x2x3x32xf32>) -> tensor<1x2x256x32xf32>
    %68 = stablehlo.transpose %67, dims = [0, 2, 1, 3] : (tensor<1x2x256x32xf32>) -> tensor<1x256x2x32xf32>
    %69 = stablehlo.iota dim = 0 : tensor<55296xf32>
    %cst_12 = stablehlo.constant dense<3.700000e-01> : tensor<f32>
    %70 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<55296xf32>
    %71 = stablehlo.multiply %69, %70 : tensor<55296xf32>
    %72 = stablehlo.sine %71 : tensor<55296xf32>
    %73 = stablehlo.reshape %72 : (tensor<55296xf32>) -> tensor<1x192x2x3x48xf32>
    %74 = stablehlo.iota dim = 0 : tensor<18432xf32>
    %cst_13 = stablehlo.constant dense<4.800000e-01> : tensor<f32>
    %75 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<18432xf32>
    %76 = stablehlo.multiply %74, %75 : tensor<18432xf32>
    %77 = stablehlo.sine %76 : tensor<18432xf32>
    %78 = stablehlo.reshape %77 : (tensor<18432xf32>) -> tensor<1x192x2x48xf32>
    %79 = stablehlo.iota dim = 0 : tensor<18432xf32>
    %cst_14 = stablehlo.constant dense<5.900000e-01> : tensor<f32>
    %80 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<18432xf32>
    %81 = stablehlo.multiply %79, %80 : tensor<18432xf32>
    %82 = stablehlo.sine %81 : tensor<18432xf32>
    %83 = stablehlo.reshape %82 : (tensor<18432xf32>) -> tensor<1x192x2x48xf32>
    %84 = stablehlo.dot_general %73, %78, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x192x2x3x48xf32>, tensor<1x192x2x48xf32>) -> tensor<1x2x192x3x192xf32>
    %cst_15 = stablehlo.constant dense<1.700000e-01> : tensor<f32>
    %85 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<1x2x192x3x192xf32>
    %86 = stablehlo.multiply %84, %85 : tensor<1x2x192x3x192xf32>
    %c_16 = stablehlo.constant dense<true> : tensor<i1>
    %87 = stablehlo.broadcast_in_dim %c_16, dims = [] : (tensor<i1>) -> tensor<192x192xi1>
    %88 = call @tril_1(%87) : (tensor<192x192xi1>) -> tensor<192x192xi1>
    %cst_17 = stablehlo.constant dense<-1.000000e+30> : tensor<f32>
    %89:2 = call @_where_2(%88, %86, %cst_17) : (tensor<192x192xi1>, tensor<1x2x192x3x192xf32>, tensor<f32>) -> (tensor<3x1x2x192x192xf32>, tensor<3x1x2x192x192xi1>)
    %cst_18 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %90 = stablehlo.reduce(%89#0 init: %cst_18) applies stablehlo.maximum across dimensions = [4] : (tensor<3x1x2x192x192xf32>, tensor<f32>) -> tensor<3x1x2x192xf32>
    %cst_19 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %91 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<3x1x2x192xf32>
    %92 = stablehlo.maximum %91, %90 : tensor<3x1x2x192xf32>
    %93 = stablehlo.broadcast_in_dim %92, dims = [0, 1, 2, 3] : (tensor<3x1x2x192xf32>) -> tensor<3x1x2x192x1xf32>
    %94 = stablehlo.broadcast_in_dim %93, dims = [0, 1, 2, 3, 4] : (tensor<3x1x2x192x1xf32>) -> tensor<3x1x2x192x192xf32>
    %95 = stablehlo.subtract %89#0, %94 : tensor<3x1x2x192x192xf32>
    %96 = stablehlo.exponential %95 : tensor<3x1x2x192x192xf32>
    %cst_20 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %97 = stablehlo.reduce(%96 init: %cst_20) applies stablehlo.add across dimensions = [4] : (tensor<3x1x2x192x192xf32>, tensor<f32>) -> tensor<3x1x2x192xf32>
    %98 = stablehlo.broadcast_in_dim %97, dims = [0, 1, 2, 3] : (tensor<3x1x2x192xf32>) -> tensor<3x1x2x192x1xf32>
    %99 = stablehlo.broadcast_in_dim %98, dims = [0, 1, 2, 3, 4] : (tensor<3x1x2x192x1xf32>) -> tensor<3x1x2x192x192xf32>
    %100 = stablehlo.divide %96, %99 : tensor<3x1x2x192x192xf32>
    %101 = stablehlo.multiply %98, %98 : tensor<3x1x2x192x1xf32>
    %cst_21 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %102 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<3x1x2x192x1xf32>
    %103 = stablehlo.divide %102, %101 : tensor<3x1x2x192x1xf32>
    %104 = stablehlo.dot_general %83, %100, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<1x192x2x48xf32>, tensor<3x1x2x192x192xf32>) -> tensor<1x2x48x3x192xf32>
    %105 = stablehlo.transpose %104, dims = [3, 0, 4, 1, 2] : (tensor<1x2x48x3x192xf32>) -> tensor<3x1x192x2x48xf32>
    %106 = stablehlo.transpose %105, dims = [1, 2, 3, 0, 4] : (tensor<3x1x192x2x48xf32>) -> tensor<1x192x2x3x48xf32>
    %107 = stablehlo.iota dim = 0 : tensor<55296xf32>
    %cst_22 = stablehlo.constant dense<0.699999988> : tensor<f32>
    %108 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<55296xf32>
    %109 = stablehlo.multiply %107, %108 : tensor<55296xf32>
    %110 = stablehlo.sine %109 : tensor<55296xf32>
    %111 = stablehlo.reshape %110 : (tensor<55296xf32>) -> tensor<1x192x2x3x48xf32>
    %112 = stablehlo.multiply %111, %106 : tensor<1x192x2x3x48xf32>
    %113 = stablehlo.transpose %112, dims = [3, 0, 1, 2, 4] : (tensor<1x192x2x3x48xf32>) -> tensor<3x1x192x2x48xf32>
    %114 = stablehlo.transpose %113, dims = [1, 3, 4, 0, 2] : (tensor<3x1x192x2x48xf32>) -> tensor<1x2x48x3x192xf32>
    %115 = stablehlo.dot_general %114, %83, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x2x48x3x192xf32>, tensor<1x192x2x48xf32>) -> tensor<1x2x3x192x192xf32>
    %116 = stablehlo.transpose %115, dims = [2, 0, 1, 3, 4] : (tensor<1x2x3x192x192xf32>) -> tensor<3x1x2x192x192xf32>
    %117 = stablehlo.dot_general %114, %100, batching_dims = [0, 1] x [1, 2], contracting_dims = [3, 4] x [0, 3], precision = [DEFAULT, DEFAULT] : (tensor<1x2x48x3x192xf32>, tensor<3x1x2x192x192xf32>) -> tensor<1x2x48x192xf32>
    %118 = stablehlo.transpose %117, dims = [0, 3, 1, 2] : (tensor<1x2x48x192xf32>) -> tensor<1x192x2x48xf32>
    %119 = stablehlo.broadcast_in_dim %103, dims = [0, 1, 2, 3, 4] : (tensor<3x1x2x192x1xf32>) -> tensor<3x1x2x192x192xf32>
    %120 = stablehlo.multiply %116, %119 : tensor<3x1x2x192x192xf32>
    %121 = stablehlo.multiply %120, %96 : tensor<3x1x2x192x192xf32>
    %cst_23 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %122 = stablehlo.reduce(%121 init: %cst_23) applies stablehlo.add across dimensions = [4] : (tensor<3x1x2x192x192xf32>, tensor<f32>) -> tensor<3x1x2x192xf32>
    %123 = stablehlo.reshape %122 : (tensor<3x1x2x192xf32>) -> tensor<3x1x2x192x1xf32>
    %124 = stablehlo.negate %123 : tensor<3x1x2x192x1xf32>
    %125 = stablehlo.broadcast_in_dim %98, dims = [0, 1, 2, 3, 4] : (tensor<3x1x2x192x1xf32>) -> tensor<3x1x2x192x192xf32>
    %126 = stablehlo.divide %116, %125 : tensor<3x1x2x192x192xf32>
    %cst_24 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %127 = stablehlo.reduce(%124 init: %cst_24) applies stablehlo.add across dimensions = [1, 4] : (tensor<3x1x2x192x1xf32>, tensor<f32>) -> tensor<3x2x192xf32>
    %128 = stablehlo.broadcast_in_dim %127, dims = [0, 2, 3] : (tensor<3x2x192xf32>) -> tensor<3x1x2x192xf32>
    %129 = stablehlo.broadcast_in_dim %128, dims = [0, 1, 2, 3] : (tensor<3x1x2x192xf32>) -> tensor<3x1x2x192x192xf32>
    %130 = stablehlo.add %126, %129 : tensor<3x1x2x192x192xf32>
    %131 = stablehlo.multiply %130, %96 : tensor<3x1x2x192x192xf32>
    %132 = call @_where_3(%89#1, %131) : (tensor<3x1x2x192x192xi1>, tensor<3x1x2x192x192xf32>) -> tensor<1x2x192x3x192xf32>
    %cst_25 = stablehlo.constant dense<1.700000e-01> : tensor<f32>
    %133 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<1x2x192x3x192xf32>
    %134 = stablehlo.multiply %132, %133 : tensor<1x2x192x3x192xf32>
    %135 = stablehlo.dot_general %134, %73, batching_dims = [0, 1] x [0, 2], contracting_dims = [2, 3] x [1, 3], precision = [DEFAULT, DEFAULT] : (tensor<1x2x192x3x192xf32>, tensor<1x192x2x3x48xf32>) -> tensor<1x2x192x48xf32>
    %136 = stablehlo.transpose %135, dims = [0, 2, 1, 3] : (tensor<1x2x192x48xf32>) -> tensor<1x192x2x48xf32>
    %137 = stablehlo.dot_general %134, %78, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x2x192x3x192xf32>, tensor<1x192x2x48xf32>) -> tensor<1x2x192x3x48xf32>
    %138 = stablehlo.transpose %137, dims = [0, 2, 1, 3, 4] : (tensor<1x2x192x3x48xf32>) -> tensor<1x192x2x3x48xf32>
    %139 = stablehlo.iota dim = 0 : tensor<98304xf32>
    %cst_26 = stablehlo.constant dense<3.700000e-01> : tensor<f32>
    %140 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<98304xf32>
    %141 = stablehlo.multiply %139, %140 : tensor<98304xf32>
    %142 = stablehlo.sine %141 : tensor<98304xf32>
    %143 = stablehlo.reshape %142 : (tensor<98304xf32>) -> tensor<1x256x2x3x64xf32>
    %144 = stablehlo.convert %143 : (tensor<1x256x2x3x64xf32>) -> tensor<1x256x2x3x64xbf16>
    %145 = stablehlo.iota dim = 0 : tensor<32768xf32>
    %cst_27 = stablehlo.constant dense<4.800000e-01> : tensor<f32>
    %146 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<32768xf32>
    %147 = stablehlo.multiply %145, %146 : tensor<32768xf32>
    %148 = stablehlo.sine %147 : tensor<32768xf32>
    %149 = stablehlo.reshape %148 : (tensor<32768xf32>) -> tensor<1x256x2x64xf32>
    %150 = stablehlo.convert %149 : (tensor<1x256x2x64xf32>) -> tensor<1x256x2x64xbf16>
    %151 = stablehlo.iota dim = 0 : tensor<32768xf32>
    %cst_28 = stablehlo.constant dense<5.900000e-01> : tensor<f32>
    %152 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<32768xf32>
    %153 = stablehlo.multiply %151, %152 : tensor<32768xf32>
    %154 = stablehlo.sine %153 : tensor<32768xf32>
    %155 = stablehlo.reshape %154 : (tensor<32768xf32>) -> tensor<1x256x2x64xf32>
    %156 = stablehlo.convert %155 : (tensor<1x256x2x64xf32>) -> tensor<1x256x2x64xbf16>
    %157 = stablehlo.dot_general %150, %144, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [4], precision = [DEFAULT, DEFAULT] : (tensor<1x256x2x64xbf16>, tensor<1x256x2x3x64xbf16>) -> tensor<1x2x256x256x3xf32>
    %158 = stablehlo.transpose %157, dims = [0, 1, 4, 3, 2] : (tensor<1x2x256x256x3xf32>) -> tensor<1x2x3x256x256xf32>
    %cst_29 = stablehlo.constant dense<1.700000e-01> : tensor<f32>
    %159 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<1x2x3x256x256xf32>
    %160 = stablehlo.multiply %158, %159 : tensor<1x2x3x256x256xf32>
    %c_30 = stablehlo.constant dense<true> : tensor<i1>
    %161 = stablehlo.broadcast_in_dim %c_30, dims = [] : (tensor<i1>) -> tensor<256x256xi1>
    %162 = call @tril(%161) : (tensor<256x256xi1>) -> tensor<256x256xi1>
    %cst_31 = stablehlo.constant dense<-1.000000e+30> : tensor<f32>
    %163:2 = call @_where(%162, %160, %cst_31) : (tensor<256x256xi1>, tensor<1x2x3x256x256xf32>, tensor<f32>) -> (tensor<1x2x3x256x256xf32>, tensor<1x2x3x256x256xi1>)
    %cst_32 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %164 = stablehlo.reduce(%163#0 init: %cst_32) applies stablehlo.maximum across dimensions = [4] : (tensor<1x2x3x256x256xf32>, tensor<f32>) -> tensor<1x2x3x256xf32>
    %cst_33 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %165 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<1x2x3x256xf32>
    %166 = stablehlo.maximum %165, %164 : tensor<1x2x3x256xf32>
    %167 = stablehlo.broadcast_in_dim %166, dims = [0, 1, 2, 3] : (tensor<1x2x3x256xf32>) -> tensor<1x2x3x256x1xf32>
    %168 = stablehlo.broadcast_in_dim %167, dims = [0, 1, 2, 3, 4] : (tensor<1x2x3x256x1xf32>) -> tensor<1x2x3x256x256xf32>
    %169 = stablehlo.subtract %163#0, %168 : tensor<1x2x3x256x256xf32>
    %170 = stablehlo.exponential %169 : tensor<1x2x3x256x256xf32>
    %cst_34 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %171 = stablehlo.reduce(%170 init: %cst_34) applies stablehlo.add across dimensions = [4] : (tensor<1x2x3x256x256xf32>, tensor<f32>) -> tensor<1x2x3x256xf32>
    %172 = stablehlo.broadcast_in_dim %171, dims = [0, 1, 2, 3] : (tensor<1x2x3x256xf32>) -> tensor<1x2x3x256x1xf32>
    %173 = stablehlo.broadcast_in_dim %172, dims = [0, 1, 2, 3, 4] : (tensor<1x2x3x256x1xf32>) -> tensor<1x2x3x256x256xf32>
    %174 = stablehlo.divide %170, %173 : tensor<1x2x3x256x256xf32>
    %175 = stablehlo.multiply %172, %172 : tensor<1x2x3x256x1xf32>
    %cst_35 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %176 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<1x2x3x256x1xf32>
    %177 = stablehlo.divide %176, %175 : tensor<1x2x3x256x1xf32>
    %178 = stablehlo.convert %174 : (tensor<1x2x3x256x256xf32>) -> tensor<1x2x3x256x256xbf16>
    %179 = stablehlo.dot_general %156, %178, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<1x256x2x64xbf16>, tensor<1x2x3x256x256xbf16>) -> tensor<1x2x64x3x256xbf16>
    %180 = stablehlo.transpose %179, dims = [0, 4, 1, 3, 2] : (tensor<1x2x64x3x256xbf16>) -> tensor<1x256x2x3x64xbf16>
    %181 = stablehlo.iota dim = 0 : tensor<98304xf32>
    %cst_36 = stablehlo.constant dense<0.699999988> : tensor<f32>
    %182 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<f32>) -> tensor<98304xf32>
    %183 = stablehlo.multiply %181, %182 : tensor<98304xf32>
    %184 = stablehlo.sine %183 : tensor<98304xf32>
    %185 = stablehlo.reshape %184 : (tensor<98304xf32>) -> tensor<1x256x2x3x64xf32>
    %186 = stablehlo.convert %185 : (tensor<1x256x2x3x64xf32>) -> tensor<1x256x2x3x64xbf16>
    %187 = stablehlo.multiply %186, %180 : tensor<1x256x2x3x64xbf16>
    %188 = stablehlo.transpose %187, dims = [0, 2, 4, 3, 1] : (tensor<1x256x2x3x64xbf16>) -> tensor<1x2x64x3x256xbf16>
    %189 = stablehlo.dot_general %188, %156, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x2x64x3x256xbf16>, tensor<1x256x2x64xbf16>) -> tensor<1x2x3x256x256xbf16>
    %190 = stablehlo.dot_general %188, %178, batching_dims = [0, 1] x [0, 1], contracting_dims = [3, 4] x [2, 3], precision = [DEFAULT, DEFAULT] : (tensor<1x2x64x3x256xbf16>, tensor<1x2x3x256x256xbf16>) -> tensor<1x2x64x256xbf16>
    %191 = stablehlo.transpose %190, dims = [0, 3, 1, 2] : (tensor<1x2x64x256xbf16>) -> tensor<1x256x2x64xbf16>
    %192 = stablehlo.convert %189 : (tensor<1x2x3x256x256xbf16>) -> tensor<1x2x3x256x256xf32>
    %193 = stablehlo.broadcast_in_dim %177, dims = [0, 1, 2, 3, 4] : (tensor<1x2x3x256x1xf32>) -> tensor<1x2x3x256x256xf32>
    %194 = stablehlo.multiply %192, %193 : tensor<1x2x3x256x256xf32>
    %195 = stablehlo.multiply %194, %170 : tensor<1x2x3x256x256xf32>
    %cst_37 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %196 = stablehlo.reduce(%195 init: %cst_37) applies stablehlo.add across dimensions = [4] : (tensor<1x2x3x256x256xf32>, tensor<f32>) -> tensor<1x2x3x256xf32>
    %197 = stablehlo.reshape %196 : (tensor<1x2x3x256xf32>) -> tensor<1x2x3x256x1xf32>
    %198 = stablehlo.negate %197 : tensor<1x2x3x256x1xf32>
    %199 = stablehlo.broadcast_in_dim %172, dims = [0, 1, 2, 3, 4] : (tensor<1x2x3x256x1xf32>) -> tensor<1x2x3x256x256xf32>
    %200 = stablehlo.divide %192, %199 : tensor<1x2x3x256x256xf32>
    %cst_38 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %201 = stablehlo.reduce(%198 init: %cst_38) applies stablehlo.add across dimensions = [0, 4] : (tensor<1x2x3x256x1xf32>, tensor<f32>) -> tensor<2x3x256xf32>
    %202 = stablehlo.broadcast_in_dim %201, dims = [1, 2, 3] : (tensor<2x3x256xf32>) -> tensor<1x2x3x256xf32>
    %203 = stablehlo.broadcast_in_dim %202, dims = [0, 1, 2, 3] : (tensor<1x2x3x256xf32>) -> tensor<1x2x3x256x256xf32>
    %204 = stablehlo.add %200, %203 : tensor<1x2x3x256x256xf32>
    %205 = stablehlo.multiply %204, %170 : tensor<1x2x3x256x256xf32>
    %206 = call @_where_0(%163#1, %205) : (tensor<1x2x3x256x256xi1>, tensor<1x2x3x256x256xf32>) -> tensor<1x2x3x256x256xf32>
    %cst_39 = stablehlo.constant dense<1.700000e-01> : tensor<f32>
    %207 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<1x2x3x256x256xf32>
    %208 = stablehlo.multiply %206, %207 : tensor<1x2x3x256x256xf32>
    %209 = stablehlo.transpose %208, dims = [0, 1, 4, 3, 2] : (tensor<1x2x3x256x256xf32>) -> tensor<1x2x256x256x3xf32>
    %210 = stablehlo.convert %209 : tensor<1x2x256x256x3xf32>
    %211 = stablehlo.convert %150 : (tensor<1x256x2x64xbf16>) -> tensor<1x256x2x64xf32>
    %212 = stablehlo.dot_general %210, %211, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x2x256x256x3xf32>, tensor<1x256x2x64xf32>) -> tensor<1x2x256x3x64xf32>
    %213 = stablehlo.transpose %212, dims = [0, 2, 1, 3, 4] : (tensor<1x2x256x3x64xf32>) -> tensor<1x256x2x3x64xf32>
    %214 = stablehlo.convert %213 : (tensor<1x256x2x3x64xf32>) -> tensor<1x256x2x3x64xbf16>
    %215 = stablehlo.convert %209 : tensor<1x2x256x256x3xf32>
    %216 = stablehlo.convert %144 : (tensor<1x256x2x3x64xbf16>) -> tensor<1x256x2x3x64xf32>
    %217 = stablehlo.dot_general %215, %216, batching_dims = [0, 1] x [0, 2], contracting_dims = [3, 4] x [1, 3], precision = [DEFAULT, DEFAULT] : (tensor<1x2x256x256x3xf32>, tensor<1x256x2x3x64xf32>) -> tensor<1x2x256x64xf32>
    %218 = stablehlo.transpose %217, dims = [0, 2, 1, 3] : (tensor<1x2x256x64xf32>) -> tensor<1x256x2x64xf32>
    %219 = stablehlo.convert %218 : (tensor<1x256x2x64xf32>) -> tensor<1x256x2x64xbf16>
    return %37, %66, %68, %47, %106, %138, %136, %118, %180, %214, %219, %191 : tensor<1x256x2x3x32xf32>, tensor<1x256x2x3x32xf32>, tensor<1x256x2x32xf32>, tensor<1x256x2x32xf32>, tensor<1x192x2x3x48xf32>, tensor<1x192x2x3x48xf32>, tensor<1x192x2x48xf32>, tensor<1x192x2x48xf32>, tensor<1x256x2x3x64xbf16>, tensor<1x256x2x3x64xbf16>, tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>
  }
  func.func private @tril(%arg0: tensor<256x256xi1>) -> tensor<256x256xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<256x256xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<256x256xi32>
    %2 = stablehlo.add %0, %1 : tensor<256x256xi32>
    %3 = stablehlo.iota dim = 1 : tensor<256x256xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<256x256xi32>, tensor<256x256xi32>) -> tensor<256x256xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<256x256xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<256x256xi1>, tensor<256x256xi1>
    return %6 : tensor<256x256xi1>
  }
  func.func private @_where(%arg0: tensor<256x256xi1>, %arg1: tensor<1x2x3x256x256xf32>, %arg2: tensor<f32>) -> (tensor<1x2x3x256x256xf32>, tensor<1x2x3x256x256xi1>) {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [3, 4] : (tensor<256x256xi1>) -> tensor<1x2x3x256x256xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x2x3x256x256xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<1x2x3x256x256xi1>, tensor<1x2x3x256x256xf32>
    return %3, %1 : tensor<1x2x3x256x256xf32>, tensor<1x2x3x256x256xi1>
  }
  func.func private @_where_0(%arg0: tensor<1x2x3x256x256xi1>, %arg1: tensor<1x2x3x256x256xf32>) -> tensor<1x2x3x256x256xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x2x3x256x256xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<1x2x3x256x256xi1>, tensor<1x2x3x256x256xf32>
    return %1 : tensor<1x2x3x256x256xf32>
  }
  func.func private @tril_1(%arg0: tensor<192x192xi1>) -> tensor<192x192xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<192x192xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<192x192xi32>
    %2 = stablehlo.add %0, %1 : tensor<192x192xi32>
    %3 = stablehlo.iota dim = 1 : tensor<192x192xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<192x192xi32>, tensor<192x192xi32>) -> tensor<192x192xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<192x192xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<192x192xi1>, tensor<192x192xi1>
    return %6 : tensor<192x192xi1>
  }
  func.func private @_where_2(%arg0: tensor<192x192xi1>, %arg1: tensor<1x2x192x3x192xf32>, %arg2: tensor<f32>) -> (tensor<3x1x2x192x192xf32>, tensor<3x1x2x192x192xi1>) {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<192x192xi1>) -> tensor<1x2x192x192xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x2x192x192xf32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [1, 2, 3, 4] : (tensor<1x2x192x192xi1>) -> tensor<3x1x2x192x192xi1>
    %4 = stablehlo.broadcast_in_dim %2, dims = [1, 2, 3, 4] : (tensor<1x2x192x192xf32>) -> tensor<3x1x2x192x192xf32>
    %5 = stablehlo.transpose %arg1, dims = [3, 0, 1, 2, 4] : (tensor<1x2x192x3x192xf32>) -> tensor<3x1x2x192x192xf32>
    %6 = stablehlo.select %3, %5, %4 : tensor<3x1x2x192x192xi1>, tensor<3x1x2x192x192xf32>
    return %6, %3 : tensor<3x1x2x192x192xf32>, tensor<3x1x2x192x192xi1>
  }
  func.func private @_where_3(%arg0: tensor<3x1x2x192x192xi1>, %arg1: tensor<3x1x2x192x192xf32>) -> tensor<1x2x192x3x192xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x1x2x192x192xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<3x1x2x192x192xi1>, tensor<3x1x2x192x192xf32>
    %2 = stablehlo.transpose %1, dims = [1, 2, 3, 0, 4] : (tensor<3x1x2x192x192xf32>) -> tensor<1x2x192x3x192xf32>
    return %2 : tensor<1x2x192x3x192xf32>
  }
}
