// Attention over rows too long for PSUM, in pieces of columns (pass/pieces.c): a softmax with -inf where keys are not there,
// its pieces each once; and a causal one with gradients, whose sums go from piece to piece. Rows and columns are no multiples
// of 128 or of a piece. The chip agrees with the evaluator; on trn1 and on two cores it has the same bits.
// run: otrn compile %s --cache=off --dump=pieces -o %t/a.otrn | grep -c 'otrn.rows'
// expect: 13
// run: otrn run %t/a.otrn --check --output=%t/a && otrn eval %s --output=%t/b
// run: otrn eval %S/data/attention_long_same.mlir --input=%t/a/result_0.npy,%t/a/result_1.npy,%t/a/result_2.npy,%t/a/result_3.npy,%t/b/result_0.npy,%t/b/result_1.npy,%t/b/result_2.npy,%t/b/result_3.npy
// run: otrn run %s --target=trn1 --cache=off --output=%t/c && otrn run %s --lnc=2 --cache=off --check --output=%t/d
// run: for i in 0 1 2 3; do cmp %t/a/result_$i.npy %t/c/result_$i.npy && cmp %t/a/result_$i.npy %t/d/result_$i.npy || exit 1; done
module @jit_main attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<1x1024x1x32xf32> {jax.result_info = "result[0]"}, tensor<1x1100x2x128xf32> {jax.result_info = "result[1]"}, tensor<1x1100x2x128xf32> {jax.result_info = "result[2]"}, tensor<1x1100x2x128xf32> {jax.result_info = "result[3]"}) {
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
    %cst_10 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
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
    return %33, %101, %99, %81 : tensor<1x1024x1x32xf32>, tensor<1x1100x2x128xf32>, tensor<1x1100x2x128xf32>, tensor<1x1100x2x128xf32>
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
}
