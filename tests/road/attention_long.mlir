// Attention over rows too long for PSUM, in chunks of columns (tile/rows_chunks.c): a softmax with -inf where keys are not there;
// a causal one with gradients, whose products over rows add up chunk by chunk; wide heads, of two tiles; more rows than
// SBUF has room for. Rows and columns are no multiples of 128 or of a chunk. No scores reach HBM. The chip agrees with the evaluator;
// on trn1 and on two cores it has the same bits.
// run: otrn compile %s --cache=off -o %t/a.otrn && otrn prof %t/a.otrn
// expect: HBM planned    22.16 MB
// run: otrn run %t/a.otrn --check --output=%t/a && otrn eval %s --output=%t/b
// run: otrn eval %S/data/attention_long_same.mlir --input=%t/a/result_0.npy,%t/a/result_1.npy,%t/a/result_2.npy,%t/a/result_3.npy,%t/a/result_4.npy,%t/a/result_5.npy,%t/a/result_6.npy,%t/a/result_7.npy,%t/a/result_8.npy,%t/a/result_9.npy,%t/b/result_0.npy,%t/b/result_1.npy,%t/b/result_2.npy,%t/b/result_3.npy,%t/b/result_4.npy,%t/b/result_5.npy,%t/b/result_6.npy,%t/b/result_7.npy,%t/b/result_8.npy,%t/b/result_9.npy
// run: otrn run %s --target=trn1 --cache=off --output=%t/c && otrn run %s --lnc=2 --cache=off --check --output=%t/d
// run: for i in 0 1 2 3 4 5 6 7 8 9; do cmp %t/a/result_$i.npy %t/c/result_$i.npy && cmp %t/a/result_$i.npy %t/d/result_$i.npy || exit 1; done
module @jit_main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<1x1024x1x32xf32> {jax.result_info = "result[0]"}, tensor<1x1100x2x128xf32> {jax.result_info = "result[1]"}, tensor<1x1100x2x128xf32> {jax.result_info = "result[2]"}, tensor<1x1100x2x128xf32> {jax.result_info = "result[3]"}, tensor<1x200x2x160xf32> {jax.result_info = "result[4]"}, tensor<1x200x2x160xf32> {jax.result_info = "result[5]"}, tensor<1x200x2x160xf32> {jax.result_info = "result[6]"}, tensor<1x2600x1x128xf32> {jax.result_info = "result[7]"}, tensor<1x1100x1x128xf32> {jax.result_info = "result[8]"}, tensor<1x1100x1x128xf32> {jax.result_info = "result[9]"}) {
    %0 = stablehlo.iota dim = 0 : tensor<32768xf32>
    %cst = stablehlo.constant dense<3.700000e-01> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<32768xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<32768xf32>
    %3 = stablehlo.sine %2 : tensor<32768xf32>
    %4 = stablehlo.reshape %3 : (tensor<32768xf32>) -> tensor<1x1024x1x32xf32>
    %5 = stablehlo.iota dim = 0 : tensor<73728xf32>
    %cst_0 = stablehlo.constant dense<4.800000e-01> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<73728xf32>
    %7 = stablehlo.multiply %5, %6 : tensor<73728xf32>
    %8 = stablehlo.sine %7 : tensor<73728xf32>
    %9 = stablehlo.reshape %8 : (tensor<73728xf32>) -> tensor<1x2304x1x32xf32>
    %10 = stablehlo.iota dim = 0 : tensor<73728xf32>
    %cst_1 = stablehlo.constant dense<1.100000e-01> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<73728xf32>
    %12 = stablehlo.multiply %10, %11 : tensor<73728xf32>
    %13 = stablehlo.sine %12 : tensor<73728xf32>
    %14 = stablehlo.reshape %13 : (tensor<73728xf32>) -> tensor<1x2304x1x32xf32>
    %15 = stablehlo.iota dim = 0 : tensor<2304xi32>
    %c = stablehlo.constant dense<2200> : tensor<i32>
    %16 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2304xi32>
    %17 = stablehlo.compare LT, %15, %16, SIGNED : (tensor<2304xi32>, tensor<2304xi32>) -> tensor<2304xi1>
    %18 = stablehlo.broadcast_in_dim %17, dims = [3] : (tensor<2304xi1>) -> tensor<1x1x1x2304xi1>
    %19 = stablehlo.dot_general %4, %9, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x1024x1x32xf32>, tensor<1x2304x1x32xf32>) -> tensor<1x1x1024x2304xf32>
    %cst_2 = stablehlo.constant dense<2.000000e-01> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x1x1024x2304xf32>
    %21 = stablehlo.multiply %19, %20 : tensor<1x1x1024x2304xf32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %22 = call @_where(%18, %21, %cst_3) : (tensor<1x1x1x2304xi1>, tensor<1x1x1024x2304xf32>, tensor<f32>) -> tensor<1x1x1024x2304xf32>
    %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %23 = stablehlo.reduce(%22 init: %cst_4) applies stablehlo.maximum across dimensions = [3] : (tensor<1x1x1024x2304xf32>, tensor<f32>) -> tensor<1x1x1024xf32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [0, 1, 2] : (tensor<1x1x1024xf32>) -> tensor<1x1x1024x1xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [0, 1, 2, 3] : (tensor<1x1x1024x1xf32>) -> tensor<1x1x1024x2304xf32>
    %26 = stablehlo.subtract %22, %25 : tensor<1x1x1024x2304xf32>
    %27 = stablehlo.exponential %26 : tensor<1x1x1024x2304xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %28 = stablehlo.reduce(%27 init: %cst_5) applies stablehlo.add across dimensions = [3] : (tensor<1x1x1024x2304xf32>, tensor<f32>) -> tensor<1x1x1024xf32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [0, 1, 2] : (tensor<1x1x1024xf32>) -> tensor<1x1x1024x1xf32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [0, 1, 2, 3] : (tensor<1x1x1024x1xf32>) -> tensor<1x1x1024x2304xf32>
    %31 = stablehlo.divide %27, %30 : tensor<1x1x1024x2304xf32>
    %32 = stablehlo.dot_general %14, %31, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x2304x1x32xf32>, tensor<1x1x1024x2304xf32>) -> tensor<1x1x32x1024xf32>
    %33 = stablehlo.transpose %32, dims = [0, 3, 1, 2] : (tensor<1x1x32x1024xf32>) -> tensor<1x1024x1x32xf32>
    %34 = stablehlo.iota dim = 0 : tensor<281600xf32>
    %cst_6 = stablehlo.constant dense<3.700000e-01> : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<281600xf32>
    %36 = stablehlo.multiply %34, %35 : tensor<281600xf32>
    %37 = stablehlo.sine %36 : tensor<281600xf32>
    %38 = stablehlo.reshape %37 : (tensor<281600xf32>) -> tensor<1x1100x2x128xf32>
    %39 = stablehlo.iota dim = 0 : tensor<281600xf32>
    %cst_7 = stablehlo.constant dense<4.800000e-01> : tensor<f32>
    %40 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<281600xf32>
    %41 = stablehlo.multiply %39, %40 : tensor<281600xf32>
    %42 = stablehlo.sine %41 : tensor<281600xf32>
    %43 = stablehlo.reshape %42 : (tensor<281600xf32>) -> tensor<1x1100x2x128xf32>
    %44 = stablehlo.iota dim = 0 : tensor<281600xf32>
    %cst_8 = stablehlo.constant dense<1.100000e-01> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<281600xf32>
    %46 = stablehlo.multiply %44, %45 : tensor<281600xf32>
    %47 = stablehlo.sine %46 : tensor<281600xf32>
    %48 = stablehlo.reshape %47 : (tensor<281600xf32>) -> tensor<1x1100x2x128xf32>
    %49 = stablehlo.iota dim = 0 : tensor<1100xi32>
    %50 = stablehlo.broadcast_in_dim %49, dims = [0] : (tensor<1100xi32>) -> tensor<1100x1xi32>
    %51 = stablehlo.broadcast_in_dim %49, dims = [1] : (tensor<1100xi32>) -> tensor<1x1100xi32>
    %52 = stablehlo.broadcast_in_dim %50, dims = [0, 1] : (tensor<1100x1xi32>) -> tensor<1100x1100xi32>
    %53 = stablehlo.broadcast_in_dim %51, dims = [0, 1] : (tensor<1x1100xi32>) -> tensor<1100x1100xi32>
    %54 = stablehlo.compare GE, %52, %53, SIGNED : (tensor<1100x1100xi32>, tensor<1100x1100xi32>) -> tensor<1100x1100xi1>
    %55 = stablehlo.broadcast_in_dim %54, dims = [2, 3] : (tensor<1100x1100xi1>) -> tensor<1x1x1100x1100xi1>
    %56 = stablehlo.dot_general %38, %43, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x2x128xf32>, tensor<1x1100x2x128xf32>) -> tensor<1x2x1100x1100xf32>
    %cst_9 = stablehlo.constant dense<2.000000e-01> : tensor<f32>
    %57 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<1x2x1100x1100xf32>
    %58 = stablehlo.multiply %56, %57 : tensor<1x2x1100x1100xf32>
    %cst_10 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %59:2 = call @_where_0(%55, %58, %cst_10) : (tensor<1x1x1100x1100xi1>, tensor<1x2x1100x1100xf32>, tensor<f32>) -> (tensor<1x2x1100x1100xf32>, tensor<1x2x1100x1100xi1>)
    %cst_11 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %60 = stablehlo.reduce(%59#0 init: %cst_11) applies stablehlo.maximum across dimensions = [3] : (tensor<1x2x1100x1100xf32>, tensor<f32>) -> tensor<1x2x1100xf32>
    %61 = stablehlo.broadcast_in_dim %60, dims = [0, 1, 2] : (tensor<1x2x1100xf32>) -> tensor<1x2x1100x1xf32>
    %62 = stablehlo.broadcast_in_dim %61, dims = [0, 1, 2, 3] : (tensor<1x2x1100x1xf32>) -> tensor<1x2x1100x1100xf32>
    %63 = stablehlo.subtract %59#0, %62 : tensor<1x2x1100x1100xf32>
    %64 = stablehlo.exponential %63 : tensor<1x2x1100x1100xf32>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %65 = stablehlo.reduce(%64 init: %cst_12) applies stablehlo.add across dimensions = [3] : (tensor<1x2x1100x1100xf32>, tensor<f32>) -> tensor<1x2x1100xf32>
    %66 = stablehlo.broadcast_in_dim %65, dims = [0, 1, 2] : (tensor<1x2x1100xf32>) -> tensor<1x2x1100x1xf32>
    %67 = stablehlo.broadcast_in_dim %66, dims = [0, 1, 2, 3] : (tensor<1x2x1100x1xf32>) -> tensor<1x2x1100x1100xf32>
    %68 = stablehlo.divide %64, %67 : tensor<1x2x1100x1100xf32>
    %69 = stablehlo.multiply %66, %66 : tensor<1x2x1100x1xf32>
    %cst_13 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %70 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<1x2x1100x1xf32>
    %71 = stablehlo.divide %70, %69 : tensor<1x2x1100x1xf32>
    %72 = stablehlo.dot_general %48, %68, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x2x128xf32>, tensor<1x2x1100x1100xf32>) -> tensor<1x2x128x1100xf32>
    %73 = stablehlo.transpose %72, dims = [0, 3, 1, 2] : (tensor<1x2x128x1100xf32>) -> tensor<1x1100x2x128xf32>
    %cst_14 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %74 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<1x1100x2x128xf32>
    %75 = stablehlo.multiply %73, %74 : tensor<1x1100x2x128xf32>
    %76 = stablehlo.multiply %74, %48 : tensor<1x1100x2x128xf32>
    %77 = stablehlo.transpose %76, dims = [0, 2, 3, 1] : (tensor<1x1100x2x128xf32>) -> tensor<1x2x128x1100xf32>
    %78 = stablehlo.dot_general %77, %48, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x2x128x1100xf32>, tensor<1x1100x2x128xf32>) -> tensor<1x2x1100x1100xf32>
    %79 = stablehlo.dot_general %77, %68, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<1x2x128x1100xf32>, tensor<1x2x1100x1100xf32>) -> tensor<1x2x128x1100xf32>
    %80 = stablehlo.transpose %79, dims = [0, 3, 1, 2] : (tensor<1x2x128x1100xf32>) -> tensor<1x1100x2x128xf32>
    %81 = stablehlo.add %75, %80 : tensor<1x1100x2x128xf32>
    %82 = stablehlo.broadcast_in_dim %71, dims = [0, 1, 2, 3] : (tensor<1x2x1100x1xf32>) -> tensor<1x2x1100x1100xf32>
    %83 = stablehlo.multiply %78, %82 : tensor<1x2x1100x1100xf32>
    %84 = stablehlo.multiply %83, %64 : tensor<1x2x1100x1100xf32>
    %cst_15 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %85 = stablehlo.reduce(%84 init: %cst_15) applies stablehlo.add across dimensions = [3] : (tensor<1x2x1100x1100xf32>, tensor<f32>) -> tensor<1x2x1100xf32>
    %86 = stablehlo.reshape %85 : (tensor<1x2x1100xf32>) -> tensor<1x2x1100x1xf32>
    %87 = stablehlo.negate %86 : tensor<1x2x1100x1xf32>
    %88 = stablehlo.broadcast_in_dim %66, dims = [0, 1, 2, 3] : (tensor<1x2x1100x1xf32>) -> tensor<1x2x1100x1100xf32>
    %89 = stablehlo.divide %78, %88 : tensor<1x2x1100x1100xf32>
    %cst_16 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %90 = stablehlo.reduce(%87 init: %cst_16) applies stablehlo.add across dimensions = [0, 3] : (tensor<1x2x1100x1xf32>, tensor<f32>) -> tensor<2x1100xf32>
    %91 = stablehlo.broadcast_in_dim %90, dims = [1, 2] : (tensor<2x1100xf32>) -> tensor<1x2x1100xf32>
    %92 = stablehlo.broadcast_in_dim %91, dims = [0, 1, 2] : (tensor<1x2x1100xf32>) -> tensor<1x2x1100x1100xf32>
    %93 = stablehlo.add %89, %92 : tensor<1x2x1100x1100xf32>
    %94 = stablehlo.multiply %93, %64 : tensor<1x2x1100x1100xf32>
    %95 = call @_where_1(%59#1, %94) : (tensor<1x2x1100x1100xi1>, tensor<1x2x1100x1100xf32>) -> tensor<1x2x1100x1100xf32>
    %cst_17 = stablehlo.constant dense<2.000000e-01> : tensor<f32>
    %96 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<1x2x1100x1100xf32>
    %97 = stablehlo.multiply %95, %96 : tensor<1x2x1100x1100xf32>
    %98 = stablehlo.dot_general %97, %38, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x2x1100x1100xf32>, tensor<1x1100x2x128xf32>) -> tensor<1x2x1100x128xf32>
    %99 = stablehlo.transpose %98, dims = [0, 2, 1, 3] : (tensor<1x2x1100x128xf32>) -> tensor<1x1100x2x128xf32>
    %100 = stablehlo.dot_general %97, %43, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x2x1100x1100xf32>, tensor<1x1100x2x128xf32>) -> tensor<1x2x1100x128xf32>
    %101 = stablehlo.transpose %100, dims = [0, 2, 1, 3] : (tensor<1x2x1100x128xf32>) -> tensor<1x1100x2x128xf32>
    %102 = stablehlo.iota dim = 0 : tensor<64000xf32>
    %cst_18 = stablehlo.constant dense<3.700000e-01> : tensor<f32>
    %103 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<64000xf32>
    %104 = stablehlo.multiply %102, %103 : tensor<64000xf32>
    %105 = stablehlo.sine %104 : tensor<64000xf32>
    %106 = stablehlo.reshape %105 : (tensor<64000xf32>) -> tensor<1x200x2x160xf32>
    %107 = stablehlo.iota dim = 0 : tensor<64000xf32>
    %cst_19 = stablehlo.constant dense<4.800000e-01> : tensor<f32>
    %108 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<64000xf32>
    %109 = stablehlo.multiply %107, %108 : tensor<64000xf32>
    %110 = stablehlo.sine %109 : tensor<64000xf32>
    %111 = stablehlo.reshape %110 : (tensor<64000xf32>) -> tensor<1x200x2x160xf32>
    %112 = stablehlo.iota dim = 0 : tensor<64000xf32>
    %cst_20 = stablehlo.constant dense<1.100000e-01> : tensor<f32>
    %113 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<64000xf32>
    %114 = stablehlo.multiply %112, %113 : tensor<64000xf32>
    %115 = stablehlo.sine %114 : tensor<64000xf32>
    %116 = stablehlo.reshape %115 : (tensor<64000xf32>) -> tensor<1x200x2x160xf32>
    %117 = stablehlo.iota dim = 0 : tensor<200xi32>
    %118 = stablehlo.broadcast_in_dim %117, dims = [0] : (tensor<200xi32>) -> tensor<200x1xi32>
    %119 = stablehlo.broadcast_in_dim %117, dims = [1] : (tensor<200xi32>) -> tensor<1x200xi32>
    %120 = stablehlo.broadcast_in_dim %118, dims = [0, 1] : (tensor<200x1xi32>) -> tensor<200x200xi32>
    %121 = stablehlo.broadcast_in_dim %119, dims = [0, 1] : (tensor<1x200xi32>) -> tensor<200x200xi32>
    %122 = stablehlo.compare GE, %120, %121, SIGNED : (tensor<200x200xi32>, tensor<200x200xi32>) -> tensor<200x200xi1>
    %123 = stablehlo.broadcast_in_dim %122, dims = [2, 3] : (tensor<200x200xi1>) -> tensor<1x1x200x200xi1>
    %124 = stablehlo.dot_general %106, %111, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x200x2x160xf32>, tensor<1x200x2x160xf32>) -> tensor<1x2x200x200xf32>
    %cst_21 = stablehlo.constant dense<2.000000e-01> : tensor<f32>
    %125 = stablehlo.broadcast_in_dim %cst_21, dims = [] : (tensor<f32>) -> tensor<1x2x200x200xf32>
    %126 = stablehlo.multiply %124, %125 : tensor<1x2x200x200xf32>
    %cst_22 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %127:2 = call @_where_2(%123, %126, %cst_22) : (tensor<1x1x200x200xi1>, tensor<1x2x200x200xf32>, tensor<f32>) -> (tensor<1x2x200x200xf32>, tensor<1x2x200x200xi1>)
    %cst_23 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %128 = stablehlo.reduce(%127#0 init: %cst_23) applies stablehlo.maximum across dimensions = [3] : (tensor<1x2x200x200xf32>, tensor<f32>) -> tensor<1x2x200xf32>
    %129 = stablehlo.broadcast_in_dim %128, dims = [0, 1, 2] : (tensor<1x2x200xf32>) -> tensor<1x2x200x1xf32>
    %130 = stablehlo.broadcast_in_dim %129, dims = [0, 1, 2, 3] : (tensor<1x2x200x1xf32>) -> tensor<1x2x200x200xf32>
    %131 = stablehlo.subtract %127#0, %130 : tensor<1x2x200x200xf32>
    %132 = stablehlo.exponential %131 : tensor<1x2x200x200xf32>
    %cst_24 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %133 = stablehlo.reduce(%132 init: %cst_24) applies stablehlo.add across dimensions = [3] : (tensor<1x2x200x200xf32>, tensor<f32>) -> tensor<1x2x200xf32>
    %134 = stablehlo.broadcast_in_dim %133, dims = [0, 1, 2] : (tensor<1x2x200xf32>) -> tensor<1x2x200x1xf32>
    %135 = stablehlo.broadcast_in_dim %134, dims = [0, 1, 2, 3] : (tensor<1x2x200x1xf32>) -> tensor<1x2x200x200xf32>
    %136 = stablehlo.divide %132, %135 : tensor<1x2x200x200xf32>
    %137 = stablehlo.multiply %134, %134 : tensor<1x2x200x1xf32>
    %cst_25 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %138 = stablehlo.broadcast_in_dim %cst_25, dims = [] : (tensor<f32>) -> tensor<1x2x200x1xf32>
    %139 = stablehlo.divide %138, %137 : tensor<1x2x200x1xf32>
    %140 = stablehlo.dot_general %116, %136, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x200x2x160xf32>, tensor<1x2x200x200xf32>) -> tensor<1x2x160x200xf32>
    %141 = stablehlo.transpose %140, dims = [0, 3, 1, 2] : (tensor<1x2x160x200xf32>) -> tensor<1x200x2x160xf32>
    %cst_26 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %142 = stablehlo.broadcast_in_dim %cst_26, dims = [] : (tensor<f32>) -> tensor<1x200x2x160xf32>
    %143 = stablehlo.multiply %141, %142 : tensor<1x200x2x160xf32>
    %144 = stablehlo.multiply %142, %116 : tensor<1x200x2x160xf32>
    %145 = stablehlo.transpose %144, dims = [0, 2, 3, 1] : (tensor<1x200x2x160xf32>) -> tensor<1x2x160x200xf32>
    %146 = stablehlo.dot_general %145, %116, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x2x160x200xf32>, tensor<1x200x2x160xf32>) -> tensor<1x2x200x200xf32>
    %147 = stablehlo.dot_general %145, %136, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<1x2x160x200xf32>, tensor<1x2x200x200xf32>) -> tensor<1x2x160x200xf32>
    %148 = stablehlo.transpose %147, dims = [0, 3, 1, 2] : (tensor<1x2x160x200xf32>) -> tensor<1x200x2x160xf32>
    %149 = stablehlo.add %143, %148 : tensor<1x200x2x160xf32>
    %150 = stablehlo.broadcast_in_dim %139, dims = [0, 1, 2, 3] : (tensor<1x2x200x1xf32>) -> tensor<1x2x200x200xf32>
    %151 = stablehlo.multiply %146, %150 : tensor<1x2x200x200xf32>
    %152 = stablehlo.multiply %151, %132 : tensor<1x2x200x200xf32>
    %cst_27 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %153 = stablehlo.reduce(%152 init: %cst_27) applies stablehlo.add across dimensions = [3] : (tensor<1x2x200x200xf32>, tensor<f32>) -> tensor<1x2x200xf32>
    %154 = stablehlo.reshape %153 : (tensor<1x2x200xf32>) -> tensor<1x2x200x1xf32>
    %155 = stablehlo.negate %154 : tensor<1x2x200x1xf32>
    %156 = stablehlo.broadcast_in_dim %134, dims = [0, 1, 2, 3] : (tensor<1x2x200x1xf32>) -> tensor<1x2x200x200xf32>
    %157 = stablehlo.divide %146, %156 : tensor<1x2x200x200xf32>
    %cst_28 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %158 = stablehlo.reduce(%155 init: %cst_28) applies stablehlo.add across dimensions = [0, 3] : (tensor<1x2x200x1xf32>, tensor<f32>) -> tensor<2x200xf32>
    %159 = stablehlo.broadcast_in_dim %158, dims = [1, 2] : (tensor<2x200xf32>) -> tensor<1x2x200xf32>
    %160 = stablehlo.broadcast_in_dim %159, dims = [0, 1, 2] : (tensor<1x2x200xf32>) -> tensor<1x2x200x200xf32>
    %161 = stablehlo.add %157, %160 : tensor<1x2x200x200xf32>
    %162 = stablehlo.multiply %161, %132 : tensor<1x2x200x200xf32>
    %163 = call @_where_3(%127#1, %162) : (tensor<1x2x200x200xi1>, tensor<1x2x200x200xf32>) -> tensor<1x2x200x200xf32>
    %cst_29 = stablehlo.constant dense<2.000000e-01> : tensor<f32>
    %164 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<1x2x200x200xf32>
    %165 = stablehlo.multiply %163, %164 : tensor<1x2x200x200xf32>
    %166 = stablehlo.dot_general %165, %106, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x2x200x200xf32>, tensor<1x200x2x160xf32>) -> tensor<1x2x200x160xf32>
    %167 = stablehlo.transpose %166, dims = [0, 2, 1, 3] : (tensor<1x2x200x160xf32>) -> tensor<1x200x2x160xf32>
    %168 = stablehlo.dot_general %165, %111, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x2x200x200xf32>, tensor<1x200x2x160xf32>) -> tensor<1x2x200x160xf32>
    %169 = stablehlo.transpose %168, dims = [0, 2, 1, 3] : (tensor<1x2x200x160xf32>) -> tensor<1x200x2x160xf32>
    %170 = stablehlo.iota dim = 0 : tensor<332800xf32>
    %cst_30 = stablehlo.constant dense<3.700000e-01> : tensor<f32>
    %171 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<332800xf32>
    %172 = stablehlo.multiply %170, %171 : tensor<332800xf32>
    %173 = stablehlo.sine %172 : tensor<332800xf32>
    %174 = stablehlo.reshape %173 : (tensor<332800xf32>) -> tensor<1x2600x1x128xf32>
    %175 = stablehlo.iota dim = 0 : tensor<140800xf32>
    %cst_31 = stablehlo.constant dense<4.800000e-01> : tensor<f32>
    %176 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<140800xf32>
    %177 = stablehlo.multiply %175, %176 : tensor<140800xf32>
    %178 = stablehlo.sine %177 : tensor<140800xf32>
    %179 = stablehlo.reshape %178 : (tensor<140800xf32>) -> tensor<1x1100x1x128xf32>
    %180 = stablehlo.iota dim = 0 : tensor<140800xf32>
    %cst_32 = stablehlo.constant dense<1.100000e-01> : tensor<f32>
    %181 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<140800xf32>
    %182 = stablehlo.multiply %180, %181 : tensor<140800xf32>
    %183 = stablehlo.sine %182 : tensor<140800xf32>
    %184 = stablehlo.reshape %183 : (tensor<140800xf32>) -> tensor<1x1100x1x128xf32>
    %185 = stablehlo.dot_general %174, %179, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x2600x1x128xf32>, tensor<1x1100x1x128xf32>) -> tensor<1x1x2600x1100xf32>
    %cst_33 = stablehlo.constant dense<2.000000e-01> : tensor<f32>
    %186 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<1x1x2600x1100xf32>
    %187 = stablehlo.multiply %185, %186 : tensor<1x1x2600x1100xf32>
    %c_34 = stablehlo.constant dense<true> : tensor<i1>
    %c_35 = stablehlo.constant dense<0> : tensor<i32>
    %188 = call @_where_4(%c_34, %187, %c_35) : (tensor<i1>, tensor<1x1x2600x1100xf32>, tensor<i32>) -> tensor<1x1x2600x1100xf32>
    %cst_36 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %189 = stablehlo.reduce(%188 init: %cst_36) applies stablehlo.maximum across dimensions = [3] : (tensor<1x1x2600x1100xf32>, tensor<f32>) -> tensor<1x1x2600xf32>
    %190 = stablehlo.broadcast_in_dim %189, dims = [0, 1, 2] : (tensor<1x1x2600xf32>) -> tensor<1x1x2600x1xf32>
    %191 = stablehlo.broadcast_in_dim %190, dims = [0, 1, 2, 3] : (tensor<1x1x2600x1xf32>) -> tensor<1x1x2600x1100xf32>
    %192 = stablehlo.subtract %188, %191 : tensor<1x1x2600x1100xf32>
    %193 = stablehlo.exponential %192 : tensor<1x1x2600x1100xf32>
    %cst_37 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %194 = stablehlo.reduce(%193 init: %cst_37) applies stablehlo.add across dimensions = [3] : (tensor<1x1x2600x1100xf32>, tensor<f32>) -> tensor<1x1x2600xf32>
    %195 = stablehlo.broadcast_in_dim %194, dims = [0, 1, 2] : (tensor<1x1x2600xf32>) -> tensor<1x1x2600x1xf32>
    %196 = stablehlo.broadcast_in_dim %195, dims = [0, 1, 2, 3] : (tensor<1x1x2600x1xf32>) -> tensor<1x1x2600x1100xf32>
    %197 = stablehlo.divide %193, %196 : tensor<1x1x2600x1100xf32>
    %198 = stablehlo.multiply %195, %195 : tensor<1x1x2600x1xf32>
    %cst_38 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %199 = stablehlo.broadcast_in_dim %cst_38, dims = [] : (tensor<f32>) -> tensor<1x1x2600x1xf32>
    %200 = stablehlo.divide %199, %198 : tensor<1x1x2600x1xf32>
    %201 = stablehlo.dot_general %184, %197, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x1100x1x128xf32>, tensor<1x1x2600x1100xf32>) -> tensor<1x1x128x2600xf32>
    %202 = stablehlo.transpose %201, dims = [0, 3, 1, 2] : (tensor<1x1x128x2600xf32>) -> tensor<1x2600x1x128xf32>
    %cst_39 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %203 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<1x2600x1x128xf32>
    %204 = stablehlo.multiply %202, %203 : tensor<1x2600x1x128xf32>
    %205 = stablehlo.multiply %203, %174 : tensor<1x2600x1x128xf32>
    %206 = stablehlo.transpose %205, dims = [0, 2, 3, 1] : (tensor<1x2600x1x128xf32>) -> tensor<1x1x128x2600xf32>
    %207 = stablehlo.dot_general %206, %184, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<1x1x128x2600xf32>, tensor<1x1100x1x128xf32>) -> tensor<1x1x2600x1100xf32>
    %208 = stablehlo.dot_general %206, %197, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<1x1x128x2600xf32>, tensor<1x1x2600x1100xf32>) -> tensor<1x1x128x1100xf32>
    %209 = stablehlo.transpose %208, dims = [0, 3, 1, 2] : (tensor<1x1x128x1100xf32>) -> tensor<1x1100x1x128xf32>
    %210 = stablehlo.broadcast_in_dim %200, dims = [0, 1, 2, 3] : (tensor<1x1x2600x1xf32>) -> tensor<1x1x2600x1100xf32>
    %211 = stablehlo.multiply %207, %210 : tensor<1x1x2600x1100xf32>
    %212 = stablehlo.multiply %211, %193 : tensor<1x1x2600x1100xf32>
    %cst_40 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %213 = stablehlo.reduce(%212 init: %cst_40) applies stablehlo.add across dimensions = [3] : (tensor<1x1x2600x1100xf32>, tensor<f32>) -> tensor<1x1x2600xf32>
    %214 = stablehlo.reshape %213 : (tensor<1x1x2600xf32>) -> tensor<1x1x2600x1xf32>
    %215 = stablehlo.negate %214 : tensor<1x1x2600x1xf32>
    %216 = stablehlo.broadcast_in_dim %195, dims = [0, 1, 2, 3] : (tensor<1x1x2600x1xf32>) -> tensor<1x1x2600x1100xf32>
    %217 = stablehlo.divide %207, %216 : tensor<1x1x2600x1100xf32>
    %cst_41 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %218 = stablehlo.reduce(%215 init: %cst_41) applies stablehlo.add across dimensions = [0, 1, 3] : (tensor<1x1x2600x1xf32>, tensor<f32>) -> tensor<2600xf32>
    %219 = stablehlo.broadcast_in_dim %218, dims = [2] : (tensor<2600xf32>) -> tensor<1x1x2600xf32>
    %220 = stablehlo.broadcast_in_dim %219, dims = [0, 1, 2] : (tensor<1x1x2600xf32>) -> tensor<1x1x2600x1100xf32>
    %221 = stablehlo.add %217, %220 : tensor<1x1x2600x1100xf32>
    %222 = stablehlo.multiply %221, %193 : tensor<1x1x2600x1100xf32>
    %c_42 = stablehlo.constant dense<true> : tensor<i1>
    %223 = call @_where_5(%c_42, %222) : (tensor<i1>, tensor<1x1x2600x1100xf32>) -> tensor<1x1x2600x1100xf32>
    %cst_43 = stablehlo.constant dense<2.000000e-01> : tensor<f32>
    %224 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<1x1x2600x1100xf32>
    %225 = stablehlo.multiply %223, %224 : tensor<1x1x2600x1100xf32>
    %226 = stablehlo.dot_general %225, %174, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x1x2600x1100xf32>, tensor<1x2600x1x128xf32>) -> tensor<1x1x1100x128xf32>
    %227 = stablehlo.transpose %226, dims = [0, 2, 1, 3] : (tensor<1x1x1100x128xf32>) -> tensor<1x1100x1x128xf32>
    %228 = stablehlo.dot_general %225, %179, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x1x2600x1100xf32>, tensor<1x1100x1x128xf32>) -> tensor<1x1x2600x128xf32>
    %229 = stablehlo.transpose %228, dims = [0, 2, 1, 3] : (tensor<1x1x2600x128xf32>) -> tensor<1x2600x1x128xf32>
    %230 = stablehlo.add %204, %229 : tensor<1x2600x1x128xf32>
    return %33, %101, %99, %81, %169, %167, %149, %230, %227, %209 : tensor<1x1024x1x32xf32>, tensor<1x1100x2x128xf32>, tensor<1x1100x2x128xf32>, tensor<1x1100x2x128xf32>, tensor<1x200x2x160xf32>, tensor<1x200x2x160xf32>, tensor<1x200x2x160xf32>, tensor<1x2600x1x128xf32>, tensor<1x1100x1x128xf32>, tensor<1x1100x1x128xf32>
  }
  func.func private @_where(%arg0: tensor<1x1x1x2304xi1>, %arg1: tensor<1x1x1024x2304xf32>, %arg2: tensor<f32>) -> tensor<1x1x1024x2304xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1, 2, 3] : (tensor<1x1x1x2304xi1>) -> tensor<1x1x1024x2304xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x1x1024x2304xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<1x1x1024x2304xi1>, tensor<1x1x1024x2304xf32>
    return %3 : tensor<1x1x1024x2304xf32>
  }
  func.func private @_where_0(%arg0: tensor<1x1x1100x1100xi1>, %arg1: tensor<1x2x1100x1100xf32>, %arg2: tensor<f32>) -> (tensor<1x2x1100x1100xf32>, tensor<1x2x1100x1100xi1>) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1, 2, 3] : (tensor<1x1x1100x1100xi1>) -> tensor<1x2x1100x1100xi1>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1x2x1100x1100xf32>
    %2 = stablehlo.select %0, %arg1, %1 : tensor<1x2x1100x1100xi1>, tensor<1x2x1100x1100xf32>
    return %2, %0 : tensor<1x2x1100x1100xf32>, tensor<1x2x1100x1100xi1>
  }
  func.func private @_where_1(%arg0: tensor<1x2x1100x1100xi1>, %arg1: tensor<1x2x1100x1100xf32>) -> tensor<1x2x1100x1100xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x2x1100x1100xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<1x2x1100x1100xi1>, tensor<1x2x1100x1100xf32>
    return %1 : tensor<1x2x1100x1100xf32>
  }
  func.func private @_where_2(%arg0: tensor<1x1x200x200xi1>, %arg1: tensor<1x2x200x200xf32>, %arg2: tensor<f32>) -> (tensor<1x2x200x200xf32>, tensor<1x2x200x200xi1>) {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1, 2, 3] : (tensor<1x1x200x200xi1>) -> tensor<1x2x200x200xi1>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f32>) -> tensor<1x2x200x200xf32>
    %2 = stablehlo.select %0, %arg1, %1 : tensor<1x2x200x200xi1>, tensor<1x2x200x200xf32>
    return %2, %0 : tensor<1x2x200x200xf32>, tensor<1x2x200x200xi1>
  }
  func.func private @_where_3(%arg0: tensor<1x2x200x200xi1>, %arg1: tensor<1x2x200x200xf32>) -> tensor<1x2x200x200xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x2x200x200xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<1x2x200x200xi1>, tensor<1x2x200x200xf32>
    return %1 : tensor<1x2x200x200xf32>
  }
  func.func private @_where_4(%arg0: tensor<i1>, %arg1: tensor<1x1x2600x1100xf32>, %arg2: tensor<i32>) -> tensor<1x1x2600x1100xf32> {
    %0 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<1x1x2600x1100xf32>
    %2 = stablehlo.select %arg0, %arg1, %1 : tensor<i1>, tensor<1x1x2600x1100xf32>
    return %2 : tensor<1x1x2600x1100xf32>
  }
  func.func private @_where_5(%arg0: tensor<i1>, %arg1: tensor<1x1x2600x1100xf32>) -> tensor<1x1x2600x1100xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x1x2600x1100xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<i1>, tensor<1x1x2600x1100xf32>
    return %1 : tensor<1x1x2600x1100xf32>
  }
}
