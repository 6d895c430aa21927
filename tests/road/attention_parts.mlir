// Gradients of causal attention with eight query heads a key: 8400 rows, more than SBUF holds beside their sums, so that they pass in
// parts and the sums over rows wait in HBM between them (tile/block.h). No scores reach HBM, the chip agrees with the evaluator, and
// trn1 and two cores have the same bits.
// run: otrn compile %s --cache=off --lnc=1 -o %t/a.otrn && otrn prof %t/a.otrn
// expect: HBM traffic    94.11 MB
// run: otrn run %t/a.otrn --check --output=%t/a && otrn eval %s --output=%t/b
// run: otrn eval %S/data/attention_parts_same.mlir --input=%t/a/result_0.npy,%t/a/result_1.npy,%t/a/result_2.npy,%t/b/result_0.npy,%t/b/result_1.npy,%t/b/result_2.npy
// run: otrn run %s --target=trn1 --cache=off --output=%t/c && otrn run %s --lnc=2 --cache=off --check --output=%t/d
// run: for i in 0 1 2; do cmp %t/a/result_$i.npy %t/c/result_$i.npy && cmp %t/a/result_$i.npy %t/d/result_$i.npy || exit 1; done
module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<8x1050x128xf32> {jax.result_info = "result[0]"}, tensor<1050x128xf32> {jax.result_info = "result[1]"}, tensor<1050x128xf32> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.iota dim = 0 : tensor<1075200xf32>
    %cst = stablehlo.constant dense<3.700000e-01> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1075200xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<1075200xf32>
    %3 = stablehlo.sine %2 : tensor<1075200xf32>
    %4 = stablehlo.reshape %3 : (tensor<1075200xf32>) -> tensor<8x1050x128xf32>
    %5 = stablehlo.iota dim = 0 : tensor<134400xf32>
    %cst_0 = stablehlo.constant dense<4.800000e-01> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<134400xf32>
    %7 = stablehlo.multiply %5, %6 : tensor<134400xf32>
    %8 = stablehlo.sine %7 : tensor<134400xf32>
    %9 = stablehlo.reshape %8 : (tensor<134400xf32>) -> tensor<1050x128xf32>
    %10 = stablehlo.iota dim = 0 : tensor<134400xf32>
    %cst_1 = stablehlo.constant dense<1.100000e-01> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<134400xf32>
    %12 = stablehlo.multiply %10, %11 : tensor<134400xf32>
    %13 = stablehlo.sine %12 : tensor<134400xf32>
    %14 = stablehlo.reshape %13 : (tensor<134400xf32>) -> tensor<1050x128xf32>
    %15 = stablehlo.iota dim = 0 : tensor<1075200xf32>
    %cst_2 = stablehlo.constant dense<2.900000e-01> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1075200xf32>
    %17 = stablehlo.multiply %15, %16 : tensor<1075200xf32>
    %18 = stablehlo.sine %17 : tensor<1075200xf32>
    %19 = stablehlo.reshape %18 : (tensor<1075200xf32>) -> tensor<8x1050x128xf32>
    %20 = stablehlo.dot_general %4, %9, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x1050x128xf32>, tensor<1050x128xf32>) -> tensor<8x1050x1050xf32>
    %cst_3 = stablehlo.constant dense<9.000000e-02> : tensor<f32>
    %21 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<8x1050x1050xf32>
    %22 = stablehlo.multiply %20, %21 : tensor<8x1050x1050xf32>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %23 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<1050x1050xi1>
    %24 = call @tril(%23) : (tensor<1050x1050xi1>) -> tensor<1050x1050xi1>
    %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %25:2 = call @_where(%24, %22, %cst_4) : (tensor<1050x1050xi1>, tensor<8x1050x1050xf32>, tensor<f32>) -> (tensor<8x1050x1050xf32>, tensor<8x1050x1050xi1>)
    %cst_5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %26 = stablehlo.reduce(%25#0 init: %cst_5) applies stablehlo.maximum across dimensions = [2] : (tensor<8x1050x1050xf32>, tensor<f32>) -> tensor<8x1050xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<8x1050xf32>
    %28 = stablehlo.maximum %27, %26 : tensor<8x1050xf32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [0, 1] : (tensor<8x1050xf32>) -> tensor<8x1050x1xf32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [0, 1, 2] : (tensor<8x1050x1xf32>) -> tensor<8x1050x1050xf32>
    %31 = stablehlo.subtract %25#0, %30 : tensor<8x1050x1050xf32>
    %32 = stablehlo.exponential %31 : tensor<8x1050x1050xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %33 = stablehlo.reduce(%32 init: %cst_7) applies stablehlo.add across dimensions = [2] : (tensor<8x1050x1050xf32>, tensor<f32>) -> tensor<8x1050xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1] : (tensor<8x1050xf32>) -> tensor<8x1050x1xf32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [0, 1, 2] : (tensor<8x1050x1xf32>) -> tensor<8x1050x1050xf32>
    %36 = stablehlo.divide %32, %35 : tensor<8x1050x1050xf32>
    %37 = stablehlo.multiply %34, %34 : tensor<8x1050x1xf32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %38 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<8x1050x1xf32>
    %39 = stablehlo.divide %38, %37 : tensor<8x1050x1xf32>
    %40 = stablehlo.dot_general %19, %36, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x1050x128xf32>, tensor<8x1050x1050xf32>) -> tensor<128x1050xf32>
    %41 = stablehlo.transpose %40, dims = [1, 0] : (tensor<128x1050xf32>) -> tensor<1050x128xf32>
    %42 = stablehlo.dot_general %19, %14, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x1050x128xf32>, tensor<1050x128xf32>) -> tensor<8x1050x1050xf32>
    %43 = stablehlo.broadcast_in_dim %39, dims = [0, 1, 2] : (tensor<8x1050x1xf32>) -> tensor<8x1050x1050xf32>
    %44 = stablehlo.multiply %42, %43 : tensor<8x1050x1050xf32>
    %45 = stablehlo.multiply %44, %32 : tensor<8x1050x1050xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %46 = stablehlo.reduce(%45 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<8x1050x1050xf32>, tensor<f32>) -> tensor<8x1050xf32>
    %47 = stablehlo.reshape %46 : (tensor<8x1050xf32>) -> tensor<8x1050x1xf32>
    %48 = stablehlo.negate %47 : tensor<8x1050x1xf32>
    %49 = stablehlo.broadcast_in_dim %34, dims = [0, 1, 2] : (tensor<8x1050x1xf32>) -> tensor<8x1050x1050xf32>
    %50 = stablehlo.divide %42, %49 : tensor<8x1050x1050xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %51 = stablehlo.reduce(%48 init: %cst_10) applies stablehlo.add across dimensions = [2] : (tensor<8x1050x1xf32>, tensor<f32>) -> tensor<8x1050xf32>
    %52 = stablehlo.broadcast_in_dim %51, dims = [0, 1] : (tensor<8x1050xf32>) -> tensor<8x1050x1050xf32>
    %53 = stablehlo.add %50, %52 : tensor<8x1050x1050xf32>
    %54 = stablehlo.multiply %53, %32 : tensor<8x1050x1050xf32>
    %55 = call @_where_0(%25#1, %54) : (tensor<8x1050x1050xi1>, tensor<8x1050x1050xf32>) -> tensor<8x1050x1050xf32>
    %cst_11 = stablehlo.constant dense<9.000000e-02> : tensor<f32>
    %56 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<8x1050x1050xf32>
    %57 = stablehlo.multiply %55, %56 : tensor<8x1050x1050xf32>
    %58 = stablehlo.dot_general %57, %4, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x1050x1050xf32>, tensor<8x1050x128xf32>) -> tensor<1050x128xf32>
    %59 = stablehlo.dot_general %57, %9, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x1050x1050xf32>, tensor<1050x128xf32>) -> tensor<8x1050x128xf32>
    return %59, %58, %41 : tensor<8x1050x128xf32>, tensor<1050x128xf32>, tensor<1050x128xf32>
  }
  func.func private @tril(%arg0: tensor<1050x1050xi1>) -> tensor<1050x1050xi1> {
    %0 = stablehlo.iota dim = 0 : tensor<1050x1050xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1050x1050xi32>
    %2 = stablehlo.add %0, %1 : tensor<1050x1050xi32>
    %3 = stablehlo.iota dim = 1 : tensor<1050x1050xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<1050x1050xi32>, tensor<1050x1050xi32>) -> tensor<1050x1050xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<1050x1050xi1>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<1050x1050xi1>, tensor<1050x1050xi1>
    return %6 : tensor<1050x1050xi1>
  }
  func.func private @_where(%arg0: tensor<1050x1050xi1>, %arg1: tensor<8x1050x1050xf32>, %arg2: tensor<f32>) -> (tensor<8x1050x1050xf32>, tensor<8x1050x1050xi1>) {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<1050x1050xi1>) -> tensor<8x1050x1050xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<8x1050x1050xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<8x1050x1050xi1>, tensor<8x1050x1050xf32>
    return %3, %1 : tensor<8x1050x1050xf32>, tensor<8x1050x1050xi1>
  }
  func.func private @_where_0(%arg0: tensor<8x1050x1050xi1>, %arg1: tensor<8x1050x1050xf32>) -> tensor<8x1050x1050xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x1050x1050xf32>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<8x1050x1050xi1>, tensor<8x1050x1050xf32>
    return %1 : tensor<8x1050x1050xf32>
  }
}
