// chlo ops in shapes that the inputs bring: constant_like of every kind of number, broadcasts, group sizes of a ragged product
// that differ along a free dimension, einsum into wider elements. Also through bytecode.
// run: otrn eval %s --input=%S/../tools/data/f32_2x3.npy
// run: otrn run %s --input=%S/../tools/data/f32_2x3.npy --disable-pass=fold
// run: otrn compile %s --emit=mlirbc -o %t/p.mlirbc
// run: otrn run %t/p.mlirbc --input=%S/../tools/data/f32_2x3.npy
// run: otrn compile %s --emit=mlir -o %t/a.mlir && otrn compile %t/p.mlirbc --emit=mlir -o %t/b.mlir && cmp %t/a.mlir %t/b.mlir
func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = "chlo.constant_like"(%x) {value = 3.5 : f32} : (tensor<?x3xf32>) -> tensor<?x3xf32>
  %1 = "chlo.constant_like"(%x) {value = #complex.number<:f32 1.0, -2.5> : complex<f32>} : (tensor<?x3xf32>) -> tensor<?x3xcomplex<f32>>
  %2 = "chlo.constant_like"(%x) {value = -7 : i8} : (tensor<?x3xf32>) -> tensor<?x3xi8>
  %3 = "chlo.constant_like"(%x) {value = true} : (tensor<?x3xf32>) -> tensor<?x3xi1>
  %s0 = stablehlo.custom_call @Sharding(%0) : (tensor<?x3xf32>) -> tensor<2x3xf32>
  %s1 = stablehlo.custom_call @Sharding(%1) : (tensor<?x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>
  %s2 = stablehlo.custom_call @Sharding(%2) : (tensor<?x3xi8>) -> tensor<2x3xi8>
  %s3 = stablehlo.custom_call @Sharding(%3) : (tensor<?x3xi1>) -> tensor<2x3xi1>
  check.expect_eq_const %s0, dense<3.5> : tensor<2x3xf32>
  check.expect_eq_const %s1, dense<(1.0, -2.5)> : tensor<2x3xcomplex<f32>>
  check.expect_eq_const %s2, dense<-7> : tensor<2x3xi8>
  check.expect_eq_const %s3, dense<true> : tensor<2x3xi1>
  %c = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %4 = chlo.broadcast_subtract %x, %c : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32>
  %5 = chlo.broadcast_subtract %4, %x {broadcast_dimensions = array<i64: 0, 1>} : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  %a = stablehlo.constant dense<[[7, -8]]> : tensor<1x2xi4>
  %b = stablehlo.constant dense<[[7], [-8]]> : tensor<2x1xi4>
  %6 = "stablehlo.einsum"(%a, %b) {einsum_config = "ab,bc->ac"} : (tensor<1x2xi4>, tensor<2x1xi4>) -> tensor<1x1xi32>
  check.expect_eq_const %6, dense<113> : tensor<1x1xi32>
  %l = stablehlo.constant dense<[[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[7.0, 8.0], [9.0, 10.0], [11.0, 12.0]]]> : tensor<2x3x2xf32>
  %r = stablehlo.constant dense<[[[1.0, 0.0], [0.0, 1.0]], [[10.0, 0.0], [0.0, 10.0]]]> : tensor<2x2x2xf32>
  %g = stablehlo.constant dense<[[1, 2], [2, 1]]> : tensor<2x2xi32>
  %7 = "chlo.ragged_dot"(%l, %r, %g) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [1], rhs_group_dimensions = [0]>, precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>]} : (tensor<2x3x2xf32>, tensor<2x2x2xf32>, tensor<2x2xi32>) -> tensor<2x3x2xf32>
  check.expect_eq_const %7, dense<[[[1.0, 2.0], [30.0, 40.0], [50.0, 60.0]], [[7.0, 8.0], [9.0, 10.0], [110.0, 120.0]]]> : tensor<2x3x2xf32>
  return %5 : tensor<?x3xf32>
}
// expect: result 0: tensor<2x3xf32>: -1 -2 -3 -1 -2 -3
// expect: result 0: tensor<2x3xf32>: -1 -2 -3 -1 -2 -3
// expect: result 0: tensor<2x3xf32>: -1 -2 -3 -1 -2 -3
