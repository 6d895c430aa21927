// Attention and its gradients as one step each (tile/block.c, pass/scores.c): a causal mask that is known and leaves columns
// out, one added by length, products in both orders of heads, rows and columns that are no multiples of 128, fp32 and bf16.
// The scores never reach HBM: nothing of their size is live. The chip agrees with the evaluator, also without the pass. On trn1, whose
// transfers cannot transpose, the array turns queries and keys: the same bits.
// run: otrn compile %s --cache=off -o %t/attention.otrn --dump=tile > %t/tile && grep -c 'tensor: transpose' %t/tile
// expect: 80
// run: otrn run %t/attention.otrn --check --output=%t/a && otrn eval %s --output=%t/b && otrn run %s --cache=off --disable-pass=scores --output=%t/c
// run: otrn run %s --target=trn1 --cache=off --check --output=%t/d && for i in 0 1 2 3 4 5 6 7 8 9 10 11; do cmp %t/a/result_$i.npy %t/d/result_$i.npy || exit 1; done
// run: otrn eval %S/data/attention_same.mlir --input=%t/a/result_0.npy,%t/a/result_1.npy,%t/a/result_2.npy,%t/a/result_3.npy,%t/a/result_4.npy,%t/a/result_5.npy,%t/a/result_6.npy,%t/a/result_7.npy,%t/a/result_8.npy,%t/a/result_9.npy,%t/a/result_10.npy,%t/a/result_11.npy,%t/b/result_0.npy,%t/b/result_1.npy,%t/b/result_2.npy,%t/b/result_3.npy,%t/b/result_4.npy,%t/b/result_5.npy,%t/b/result_6.npy,%t/b/result_7.npy,%t/b/result_8.npy,%t/b/result_9.npy,%t/b/result_10.npy,%t/b/result_11.npy
// run: otrn eval %S/data/attention_same.mlir --input=%t/c/result_0.npy,%t/c/result_1.npy,%t/c/result_2.npy,%t/c/result_3.npy,%t/c/result_4.npy,%t/c/result_5.npy,%t/c/result_6.npy,%t/c/result_7.npy,%t/c/result_8.npy,%t/c/result_9.npy,%t/c/result_10.npy,%t/c/result_11.npy,%t/b/result_0.npy,%t/b/result_1.npy,%t/b/result_2.npy,%t/b/result_3.npy,%t/b/result_4.npy,%t/b/result_5.npy,%t/b/result_6.npy,%t/b/result_7.npy,%t/b/result_8.npy,%t/b/result_9.npy,%t/b/result_10.npy,%t/b/result_11.npy
module @jit_main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x2x200x48xf32>, tensor<2x2x200x48xf32>, tensor<2x2x200x48xf32>, tensor<2x2x200x48xf32>, tensor<2x160x3x32xf32>, tensor<2x160x3x32xf32>, tensor<2x224x3x32xf32>, tensor<2x224x3x32xf32>, tensor<2x256x1x64xbf16>, tensor<2x256x1x64xbf16>, tensor<2x256x1x64xbf16>, tensor<2x256x1x64xbf16>) {
    %0 = stablehlo.iota dim = 0 : tensor<38400xf32>
    %cst = stablehlo.constant dense<3.700000e-01> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<38400xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<38400xf32>
    %3 = stablehlo.sine %2 : tensor<38400xf32>
    %4 = stablehlo.reshape %3 : (tensor<38400xf32>) -> tensor<2x2x200x48xf32>
    %5 = stablehlo.iota dim = 0 : tensor<38400xf32>
    %cst_0 = stablehlo.constant dense<4.800000e-01> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<38400xf32>
    %7 = stablehlo.multiply %5, %6 : tensor<38400xf32>
    %8 = stablehlo.sine %7 : tensor<38400xf32>
    %9 = stablehlo.reshape %8 : (tensor<38400xf32>) -> tensor<2x2x200x48xf32>
    %10 = stablehlo.iota dim = 0 : tensor<38400xf32>
    %cst_1 = stablehlo.constant dense<5.900000e-01> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<38400xf32>
    %12 = stablehlo.multiply %10, %11 : tensor<38400xf32>
    %13 = stablehlo.sine %12 : tensor<38400xf32>
    %14 = stablehlo.reshape %13 : (tensor<38400xf32>) -> tensor<2x2x200x48xf32>
    %15 = stablehlo.iota dim = 0 : tensor<38400xf32>
    %cst_2 = stablehlo.constant dense<0.699999988> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<38400xf32>
    %17 = stablehlo.multiply %15, %16 : tensor<38400xf32>
    %18 = stablehlo.sine %17 : tensor<38400xf32>
    %19 = stablehlo.reshape %18 : (tensor<38400xf32>) -> tensor<2x2x200x48xf32>
    %20 = stablehlo.dot_general %4, %9, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x200x48xf32>, tensor<2x2x200x48xf32>) -> tensor<2x2x200x200xf32>
    %cst_3 = stablehlo.constant dense<0.144337565> : tensor<f32>
    %21 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x2x200x200xf32>
    %22 = stablehlo.multiply %20, %21 : tensor<2x2x200x200xf32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %23 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<200x200xi1>
    %24 = call @tril(%23) : (tensor<200x200xi1>) -> tensor<200x200xi1>
    %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %25:2 = call @_where(%24, %22, %cst_4) : (tensor<200x200xi1>, tensor<2x2x200x200xf32>, tensor<f32>) -> (tensor<2x2x200x200xf32>, tensor<2x2x200x200xi1>)
    %cst_5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %26 = stablehlo.reduce(%25#0 init: %cst_5) applies stablehlo.maximum across dimensions = [3] : (tensor<2x2x200x200xf32>, tensor<f32>) -> tensor<2x2x200xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<2x2x200xf32>
    %28 = stablehlo.maximum %27, %26 : tensor<2x2x200xf32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [0, 1, 2] : (tensor<2x2x200xf32>) -> tensor<2x2x200x1xf32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [0, 1, 2, 3] : (tensor<2x2x200x1xf32>) -> tensor<2x2x200x200xf32>
    %31 = stablehlo.subtract %25#0, %30 : tensor<2x2x200x200xf32>
    %32 = stablehlo.exponential %31 : tensor<2x2x200x200xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %33 = stablehlo.reduce(%32 init: %cst_7) applies stablehlo.add across dimensions = [3] : (tensor<2x2x200x200xf32>, tensor<f32>) -> tensor<2x2x200xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1, 2] : (tensor<2x2x200xf32>) -> tensor<2x2x200x1xf32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [0, 1, 2, 3] : (tensor<2x2x200x1xf32>) -> tensor<2x2x200x200xf32>
    %36 = stablehlo.divide %32, %35 : tensor<2x2x200x200xf32>
    %37 = stablehlo.multiply %34, %34 : tensor<2x2x200x1xf32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %38 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<2x2x200x1xf32>
    %39 = stablehlo.divide %38, %37 : tensor<2x2x200x1xf32>
    %40 = stablehlo.dot_general %36, %14, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x2x200x200xf32>, tensor<2x2x200x48xf32>) -> tensor<2x2x200x48xf32>
    %41 = stablehlo.dot_general %19, %36, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x2x200x48xf32>, tensor<2x2x200x200xf32>) -> tensor<2x2x48x200xf32>
    %42 = stablehlo.transpose %41, dims = [0, 1, 3, 2] : (tensor<2x2x48x200xf32>) -> tensor<2x2x200x48xf32>
    %43 = stablehlo.dot_general %19, %14, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x2x200x48xf32>, tensor<2x2x200x48xf32>) -> tensor<2x2x200x200xf32>
    %44 = stablehlo.broadcast_in_dim %39, dims = [0, 1, 2, 3] : (tensor<2x2x200x1xf32>) -> tensor<2x2x200x200xf32>
    %45 = stablehlo.multiply %43, %44 : tensor<2x2x200x200xf32>
    %46 = stablehlo.multiply %45, %32 : tensor<2x2x200x200xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %47 = stablehlo.reduce(%46 init: %cst_9) applies stablehlo.add across dimensions = [3] : (tensor<2x2x200x200xf32>, tensor<f32>) -> tensor<2x2x200xf32>
    %48 = stablehlo.reshape %47 : (tensor<2x2x200xf32>) -> tensor<2x2x200x1xf32>
    %49 = stablehlo.negate %48 : tensor<2x2x200x1xf32>
    %50 = stablehlo.broadcast_in_dim %34, dims = [0, 1, 2, 3] : (tensor<2x2x200x1xf32>) -> tensor<2x2x200x200xf32>
    %51 = stablehlo.divide %43, %50 : tensor<2x2x200x200xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %52 = stablehlo.reduce(%49 init: %cst_10) applies stablehlo.add across dimensions = [3] : (tensor<2x2x200x1xf32>, tensor<f32>) -> tensor<2x2x200xf32>
    %53 = stablehlo.broadcast_in_dim %52, dims = [0, 1, 2] : (tensor<2x2x200xf32>) -> tensor<2x2x200x200xf32>
    %54 = stablehlo.add %51, %53 : tensor<2x2x200x200xf32>
    %55 = stablehlo.multiply %54, %32 : tensor<2x2x200x200xf32>
    %56 = call @_where_0(%25#1, %55) : (tensor<2x2x200x200xi1>, tensor<2x2x200x200xf32>) -> tensor<2x2x200x200xf32>
    %cst_11 = stablehlo.constant dense<0.144337565> : tensor<f32>
    %57 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<2x2x200x200xf32>
    %58 = stablehlo.multiply %56, %57 : tensor<2x2x200x200xf32>
    %59 = stablehlo.dot_general %58, %4, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x2x200x200xf32>, tensor<2x2x200x48xf32>) -> tensor<2x2x200x48xf32>
    %60 = stablehlo.dot_general %58, %9, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x2x200x200xf32>, tensor<2x2x200x48xf32>) -> tensor<2x2x200x48xf32>
    %61 = stablehlo.iota dim = 0 : tensor<30720xf32>
    %cst_12 = stablehlo.constant dense<3.700000e-01> : tensor<f32>
    %62 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<30720xf32>
    %63 = stablehlo.multiply %61, %62 : tensor<30720xf32>
    %64 = stablehlo.sine %63 : tensor<30720xf32>
    %65 = stablehlo.reshape %64 : (tensor<30720xf32>) -> tensor<2x160x3x32xf32>
    %66 = stablehlo.iota dim = 0 : tensor<43008xf32>
    %cst_13 = stablehlo.constant dense<4.800000e-01> : tensor<f32>
    %67 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<43008xf32>
    %68 = stablehlo.multiply %66, %67 : tensor<43008xf32>
    %69 = stablehlo.sine %68 : tensor<43008xf32>
    %70 = stablehlo.reshape %69 : (tensor<43008xf32>) -> tensor<2x224x3x32xf32>
    %71 = stablehlo.iota dim = 0 : tensor<43008xf32>
    %cst_14 = stablehlo.constant dense<5.900000e-01> : tensor<f32>
    %72 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<43008xf32>
    %73 = stablehlo.multiply %71, %72 : tensor<43008xf32>
    %74 = stablehlo.sine %73 : tensor<43008xf32>
    %75 = stablehlo.reshape %74 : (tensor<43008xf32>) -> tensor<2x224x3x32xf32>
    %76 = stablehlo.iota dim = 0 : tensor<30720xf32>
    %cst_15 = stablehlo.constant dense<0.699999988> : tensor<f32>
    %77 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<30720xf32>
    %78 = stablehlo.multiply %76, %77 : tensor<30720xf32>
    %79 = stablehlo.sine %78 : tensor<30720xf32>
    %80 = stablehlo.reshape %79 : (tensor<30720xf32>) -> tensor<2x160x3x32xf32>
    %81 = stablehlo.dot_general %65, %70, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x160x3x32xf32>, tensor<2x224x3x32xf32>) -> tensor<2x3x160x224xf32>
    %cst_16 = stablehlo.constant dense<0.176776692> : tensor<f32>
    %82 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<2x3x160x224xf32>
    %83 = stablehlo.multiply %81, %82 : tensor<2x3x160x224xf32>
    %84 = stablehlo.iota dim = 0 : tensor<224xi32>
    %c_17 = stablehlo.constant dense<187> : tensor<i32>
    %85 = stablehlo.broadcast_in_dim %c_17, dims = [] : (tensor<i32>) -> tensor<224xi32>
    %86 = stablehlo.compare LT, %84, %85, SIGNED : (tensor<224xi32>, tensor<224xi32>) -> tensor<224xi1>
    %cst_18 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_19 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %87 = call @_where_1(%86, %cst_18, %cst_19) : (tensor<224xi1>, tensor<f32>, tensor<f32>) -> tensor<224xf32>
    %88 = stablehlo.broadcast_in_dim %87, dims = [3] : (tensor<224xf32>) -> tensor<1x1x1x224xf32>
    %89 = stablehlo.broadcast_in_dim %88, dims = [0, 1, 2, 3] : (tensor<1x1x1x224xf32>) -> tensor<2x3x160x224xf32>
    %90 = stablehlo.add %83, %89 : tensor<2x3x160x224xf32>
    %cst_20 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %91 = stablehlo.reduce(%90 init: %cst_20) applies stablehlo.maximum across dimensions = [3] : (tensor<2x3x160x224xf32>, tensor<f32>) -> tensor<2x3x160xf32>
    %cst_21 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %92 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<2x3x160xf32>
    %93 = stablehlo.maximum %92, %91 : tensor<2x3x160xf32>
    %94 = stablehlo.broadcast_in_dim %93, dims = [0, 1, 2] : (tensor<2x3x160xf32>) -> tensor<2x3x160x1xf32>
    %95 = stablehlo.broadcast_in_dim %94, dims = [0, 1, 2, 3] : (tensor<2x3x160x1xf32>) -> tensor<2x3x160x224xf32>
    %96 = stablehlo.subtract %90, %95 : tensor<2x3x160x224xf32>
    %97 = stablehlo.exponential %96 : tensor<2x3x160x224xf32>
    %cst_22 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %98 = stablehlo.reduce(%97 init: %cst_22) applies stablehlo.add across dimensions = [3] : (tensor<2x3x160x224xf32>, tensor<f32>) -> tensor<2x3x160xf32>
    %99 = stablehlo.broadcast_in_dim %98, dims = [0, 1, 2] : (tensor<2x3x160xf32>) -> tensor<2x3x160x1xf32>
    %100 = stablehlo.broadcast_in_dim %99, dims = [0, 1, 2, 3] : (tensor<2x3x160x1xf32>) -> tensor<2x3x160x224xf32>
    %101 = stablehlo.divide %97, %100 : tensor<2x3x160x224xf32>
    %102 = stablehlo.multiply %99, %99 : tensor<2x3x160x1xf32>
    %cst_23 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %103 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<2x3x160x1xf32>
    %104 = stablehlo.divide %103, %102 : tensor<2x3x160x1xf32>
    %105 = stablehlo.dot_general %75, %101, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x224x3x32xf32>, tensor<2x3x160x224xf32>) -> tensor<2x3x32x160xf32>
    %106 = stablehlo.transpose %105, dims = [0, 3, 1, 2] : (tensor<2x3x32x160xf32>) -> tensor<2x160x3x32xf32>
    %107 = stablehlo.transpose %80, dims = [0, 2, 3, 1] : (tensor<2x160x3x32xf32>) -> tensor<2x3x32x160xf32>
    %108 = stablehlo.dot_general %107, %75, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x3x32x160xf32>, tensor<2x224x3x32xf32>) -> tensor<2x3x160x224xf32>
    %109 = stablehlo.dot_general %107, %101, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x3x32x160xf32>, tensor<2x3x160x224xf32>) -> tensor<2x3x32x224xf32>
    %110 = stablehlo.transpose %109, dims = [0, 3, 1, 2] : (tensor<2x3x32x224xf32>) -> tensor<2x224x3x32xf32>
    %111 = stablehlo.broadcast_in_dim %104, dims = [0, 1, 2, 3] : (tensor<2x3x160x1xf32>) -> tensor<2x3x160x224xf32>
    %112 = stablehlo.multiply %108, %111 : tensor<2x3x160x224xf32>
    %113 = stablehlo.multiply %112, %97 : tensor<2x3x160x224xf32>
    %cst_24 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %114 = stablehlo.reduce(%113 init: %cst_24) applies stablehlo.add across dimensions = [3] : (tensor<2x3x160x224xf32>, tensor<f32>) -> tensor<2x3x160xf32>
    %115 = stablehlo.reshape %114 : (tensor<2x3x160xf32>) -> tensor<2x3x160x1xf32>
    %116 = stablehlo.negate %115 : tensor<2x3x160x1xf32>
    %117 = stablehlo.broadcast_in_dim %99, dims = [0, 1, 2, 3] : (tensor<2x3x160x1xf32>) -> tensor<2x3x160x224xf32>
    %118 = stablehlo.divide %108, %117 : tensor<2x3x160x224xf32>
    %cst_25 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %119 = stablehlo.reduce(%116 init: %cst_25) applies stablehlo.add across dimensions = [3] : (tensor<2x3x160x1xf32>, tensor<f32>) -> tensor<2x3x160xf32>
    %120 = stablehlo.broadcast_in_dim %119, dims = [0, 1, 2] : (tensor<2x3x160xf32>) -> tensor<2x3x160x224xf32>
    %121 = stablehlo.add %118, %120 : tensor<2x3x160x224xf32>
    %122 = stablehlo.multiply %121, %97 : tensor<2x3x160x224xf32>
    %cst_26 = stablehlo.constant dense<0.176776692> : tensor<f32>
    %123 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<2x3x160x224xf32>
    %124 = stablehlo.multiply %122, %123 : tensor<2x3x160x224xf32>
    %125 = stablehlo.dot_general %124, %65, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x3x160x224xf32>, tensor<2x160x3x32xf32>) -> tensor<2x3x224x32xf32>
    %126 = stablehlo.transpose %125, dims = [0, 2, 1, 3] : (tensor<2x3x224x32xf32>) -> tensor<2x224x3x32xf32>
    %127 = stablehlo.dot_general %124, %70, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x3x160x224xf32>, tensor<2x224x3x32xf32>) -> tensor<2x3x160x32xf32>
    %128 = stablehlo.transpose %127, dims = [0, 2, 1, 3] : (tensor<2x3x160x32xf32>) -> tensor<2x160x3x32xf32>
    %129 = stablehlo.iota dim = 0 : tensor<32768xf32>
    %cst_27 = stablehlo.constant dense<3.700000e-01> : tensor<f32>
    %130 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<32768xf32>
    %131 = stablehlo.multiply %129, %130 : tensor<32768xf32>
    %132 = stablehlo.sine %131 : tensor<32768xf32>
    %133 = stablehlo.reshape %132 : (tensor<32768xf32>) -> tensor<2x256x1x64xf32>
    %134 = stablehlo.convert %133 : (tensor<2x256x1x64xf32>) -> tensor<2x256x1x64xbf16>
    %135 = stablehlo.iota dim = 0 : tensor<32768xf32>
    %cst_28 = stablehlo.constant dense<4.800000e-01> : tensor<f32>
    %136 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<32768xf32>
    %137 = stablehlo.multiply %135, %136 : tensor<32768xf32>
    %138 = stablehlo.sine %137 : tensor<32768xf32>
    %139 = stablehlo.reshape %138 : (tensor<32768xf32>) -> tensor<2x256x1x64xf32>
    %140 = stablehlo.convert %139 : (tensor<2x256x1x64xf32>) -> tensor<2x256x1x64xbf16>
    %141 = stablehlo.iota dim = 0 : tensor<32768xf32>
    %cst_29 = stablehlo.constant dense<5.900000e-01> : tensor<f32>
    %142 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<32768xf32>
    %143 = stablehlo.multiply %141, %142 : tensor<32768xf32>
    %144 = stablehlo.sine %143 : tensor<32768xf32>
    %145 = stablehlo.reshape %144 : (tensor<32768xf32>) -> tensor<2x256x1x64xf32>
    %146 = stablehlo.convert %145 : (tensor<2x256x1x64xf32>) -> tensor<2x256x1x64xbf16>
    %147 = stablehlo.iota dim = 0 : tensor<32768xf32>
    %cst_30 = stablehlo.constant dense<0.699999988> : tensor<f32>
    %148 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<32768xf32>
    %149 = stablehlo.multiply %147, %148 : tensor<32768xf32>
    %150 = stablehlo.sine %149 : tensor<32768xf32>
    %151 = stablehlo.reshape %150 : (tensor<32768xf32>) -> tensor<2x256x1x64xf32>
    %152 = stablehlo.convert %151 : (tensor<2x256x1x64xf32>) -> tensor<2x256x1x64xbf16>
    %153 = stablehlo.dot_general %134, %140, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x256x1x64xbf16>, tensor<2x256x1x64xbf16>) -> tensor<2x1x256x256xbf16>
    %154 = stablehlo.convert %153 : (tensor<2x1x256x256xbf16>) -> tensor<2x1x256x256xf32>
    %cst_31 = stablehlo.constant dense<1.250000e-01> : tensor<f32>
    %155 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<2x1x256x256xf32>
    %156 = stablehlo.multiply %154, %155 : tensor<2x1x256x256xf32>
    %c_32 = stablehlo.constant dense<true> : tensor<i1>
    %157 = stablehlo.broadcast_in_dim %c_32, dims = [] : (tensor<i1>) -> tensor<256x256xi1>
    %158 = call @tril_2(%157) : (tensor<256x256xi1>) -> tensor<256x256xi1>
    %cst_33 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %159:2 = call @_where_3(%158, %156, %cst_33) : (tensor<256x256xi1>, tensor<2x1x256x256xf32>, tensor<f32>) -> (tensor<2x1x256x256xf32>, tensor<2x1x256x256xi1>)
    %cst_34 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %160 = stablehlo.reduce(%159#0 init: %cst_34) applies stablehlo.maximum across dimensions = [3] : (tensor<2x1x256x256xf32>, tensor<f32>) -> tensor<2x1x256xf32>
    %cst_35 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %161 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<2x1x256xf32>
    %162 = stablehlo.maximum %161, %160 : tensor<2x1x256xf32>
    %163 = stablehlo.broadcast_in_dim %162, dims = [0, 1, 2] : (tensor<2x1x256xf32>) -> tensor<2x1x256x1xf32>
    %164 = stablehlo.broadcast_in_dim %163, dims = [0, 1, 2, 3] : (tensor<2x1x256x1xf32>) -> tensor<2x1x256x256xf32>
    %165 = stablehlo.subtract %159#0, %164 : tensor<2x1x256x256xf32>
    %166 = stablehlo.exponential %165 : tensor<2x1x256x256xf32>
    %cst_36 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %167 = stablehlo.reduce(%166 init: %cst_36) applies stablehlo.add across dimensions = [3] : (tensor<2x1x256x256xf32>, tensor<f32>) -> tensor<2x1x256xf32>
    %168 = stablehlo.broadcast_in_dim %167, dims = [0, 1, 2] : (tensor<2x1x256xf32>) -> tensor<2x1x256x1xf32>
    %169 = stablehlo.broadcast_in_dim %168, dims = [0, 1, 2, 3] : (tensor<2x1x256x1xf32>) -> tensor<2x1x256x256xf32>
    %170 = stablehlo.divide %166, %169 : tensor<2x1x256x256xf32>
    %171 = stablehlo.multiply %168, %168 : tensor<2x1x256x1xf32>
    %cst_37 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %172 = stablehlo.broadcast_in_dim %cst_37, dims = [] : (tensor<f32>) -> tensor<2x1x256x1xf32>
    %173 = stablehlo.divide %172, %171 : tensor<2x1x256x1xf32>
    %174 = stablehlo.convert %170 : (tensor<2x1x256x256xf32>) -> tensor<2x1x256x256xbf16>
    %175 = stablehlo.dot_general %146, %174, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x256x1x64xbf16>, tensor<2x1x256x256xbf16>) -> tensor<2x1x64x256xbf16>
    %176 = stablehlo.transpose %175, dims = [0, 3, 1, 2] : (tensor<2x1x64x256xbf16>) -> tensor<2x256x1x64xbf16>
    %177 = stablehlo.transpose %152, dims = [0, 2, 3, 1] : (tensor<2x256x1x64xbf16>) -> tensor<2x1x64x256xbf16>
    %178 = stablehlo.dot_general %177, %146, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x1x64x256xbf16>, tensor<2x256x1x64xbf16>) -> tensor<2x1x256x256xbf16>
    %179 = stablehlo.dot_general %177, %174, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x1x64x256xbf16>, tensor<2x1x256x256xbf16>) -> tensor<2x1x64x256xbf16>
    %180 = stablehlo.transpose %179, dims = [0, 3, 1, 2] : (tensor<2x1x64x256xbf16>) -> tensor<2x256x1x64xbf16>
    %181 = stablehlo.convert %178 : (tensor<2x1x256x256xbf16>) -> tensor<2x1x256x256xf32>
    %182 = stablehlo.broadcast_in_dim %173, dims = [0, 1, 2, 3] : (tensor<2x1x256x1xf32>) -> tensor<2x1x256x256xf32>
    %183 = stablehlo.multiply %181, %182 : tensor<2x1x256x256xf32>
    %184 = stablehlo.multiply %183, %166 : tensor<2x1x256x256xf32>
    %cst_38 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %185 = stablehlo.reduce(%184 init: %cst_38) applies stablehlo.add across dimensions = [3] : (tensor<2x1x256x256xf32>, tensor<f32>) -> tensor<2x1x256xf32>
    %186 = stablehlo.reshape %185 : (tensor<2x1x256xf32>) -> tensor<2x1x256x1xf32>
    %187 = stablehlo.negate %186 : tensor<2x1x256x1xf32>
    %188 = stablehlo.broadcast_in_dim %168, dims = [0, 1, 2, 3] : (tensor<2x1x256x1xf32>) -> tensor<2x1x256x256xf32>
    %189 = stablehlo.divide %181, %188 : tensor<2x1x256x256xf32>
    %cst_39 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %190 = stablehlo.reduce(%187 init: %cst_39) applies stablehlo.add across dimensions = [1, 3] : (tensor<2x1x256x1xf32>, tensor<f32>) -> tensor<2x256xf32>
    %191 = stablehlo.broadcast_in_dim %190, dims = [0, 2] : (tensor<2x256xf32>) -> tensor<2x1x256xf32>
    %192 = stablehlo.broadcast_in_dim %191, dims = [0, 1, 2] : (tensor<2x1x256xf32>) -> tensor<2x1x256x256xf32>
    %193 = stablehlo.add %189, %192 : tensor<2x1x256x256xf32>
    %194 = stablehlo.multiply %193, %166 : tensor<2x1x256x256xf32>
    %195 = call @_where_4(%159#1, %194) : (tensor<2x1x256x256xi1>, tensor<2x1x256x256xf32>) -> tensor<2x1x256x256xf32>
    %cst_40 = stablehlo.constant dense<1.250000e-01> : tensor<f32>
    %196 = stablehlo.broadcast_in_dim %cst_40, dims = [] : (tensor<f32>) -> tensor<2x1x256x256xf32>
    %197 = stablehlo.multiply %195, %196 : tensor<2x1x256x256xf32>
    %198 = stablehlo.convert %197 : (tensor<2x1x256x256xf32>) -> tensor<2x1x256x256xbf16>
    %199 = stablehlo.dot_general %198, %134, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x1x256x256xbf16>, tensor<2x256x1x64xbf16>) -> tensor<2x1x256x64xbf16>
    %200 = stablehlo.transpose %199, dims = [0, 2, 1, 3] : (tensor<2x1x256x64xbf16>) -> tensor<2x256x1x64xbf16>
    %201 = stablehlo.dot_general %198, %140, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x1x256x256xbf16>, tensor<2x256x1x64xbf16>) -> tensor<2x1x256x64xbf16>
    %202 = stablehlo.transpose %201, dims = [0, 2, 1, 3] : (tensor<2x1x256x64xbf16>) -> tensor<2x256x1x64xbf16>
    return %40, %60, %59, %42, %106, %128, %126, %110, %176, %202, %200, %180 : tensor<2x2x200x48xf32>, tensor<2x2x200x48xf32>, tensor<2x2x200x48xf32>, tensor<2x2x200x48xf32>, tensor<2x160x3x32xf32>, tensor<2x160x3x32xf32>, tensor<2x224x3x32xf32>, tensor<2x224x3x32xf32>, tensor<2x256x1x64xbf16>, tensor<2x256x1x64xbf16>, tensor<2x256x1x64xbf16>, tensor<2x256x1x64xbf16>
  }
  func.func private @tril(%arg0: tensor<200x200xi1>) -> tensor<200x200xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<200x200xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<200x200xi32>
    %2 = stablehlo.add %0, %1 : tensor<200x200xi32>
    %3 = stablehlo.iota dim = 1 : tensor<200x200xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<200x200xi32>, tensor<200x200xi32>) -> tensor<200x200xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<200x200xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<200x200xi1>, tensor<200x200xi1>
    return %6 : tensor<200x200xi1>
  }
  func.func private @_where(%arg0: tensor<200x200xi1>, %arg1: tensor<2x2x200x200xf32>, %arg2: tensor<f32>) -> (tensor<2x2x200x200xf32>, tensor<2x2x200x200xi1>) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<200x200xi1>) -> tensor<2x2x200x200xi1>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<2x2x200x200xf32>
    %2 = stablehlo.select %0, %arg1, %1 : tensor<2x2x200x200xi1>, tensor<2x2x200x200xf32>
    return %2, %0 : tensor<2x2x200x200xf32>, tensor<2x2x200x200xi1>
  }
  func.func private @_where_0(%arg0: tensor<2x2x200x200xi1>, %arg1: tensor<2x2x200x200xf32>) -> tensor<2x2x200x200xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2x200x200xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<2x2x200x200xi1>, tensor<2x2x200x200xf32>
    return %1 : tensor<2x2x200x200xf32>
  }
  func.func private @_where_1(%arg0: tensor<224xi1>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<224xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<224xf32>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<224xf32>
    %2 = stablehlo.select %arg0, %0, %1 : tensor<224xi1>, tensor<224xf32>
    return %2 : tensor<224xf32>
  }
  func.func private @tril_2(%arg0: tensor<256x256xi1>) -> tensor<256x256xi1> {
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
  func.func private @_where_3(%arg0: tensor<256x256xi1>, %arg1: tensor<2x1x256x256xf32>, %arg2: tensor<f32>) -> (tensor<2x1x256x256xf32>, tensor<2x1x256x256xi1>) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<256x256xi1>) -> tensor<2x1x256x256xi1>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<2x1x256x256xf32>
    %2 = stablehlo.select %0, %arg1, %1 : tensor<2x1x256x256xi1>, tensor<2x1x256x256xf32>
    return %2, %0 : tensor<2x1x256x256xf32>, tensor<2x1x256x256xi1>
  }
  func.func private @_where_4(%arg0: tensor<2x1x256x256xi1>, %arg1: tensor<2x1x256x256xf32>) -> tensor<2x1x256x256xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x1x256x256xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<2x1x256x256xi1>, tensor<2x1x256x256xf32>
    return %1 : tensor<2x1x256x256xf32>
  }
}

