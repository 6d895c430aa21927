// Scales for blocks of a tensor: quantised and dequantised, weights of a product by blocks along the summed dimension, through
// a call, a loop and bytecode.
// run: otrn eval %s
// run: otrn run %s
// run: otrn compile %s --emit=mlirbc -o %t/p.mlirbc
// run: otrn run %t/p.mlirbc
// run: otrn compile %s --emit=mlir -o %t/a.mlir && otrn compile %t/p.mlirbc --emit=mlir -o %t/b.mlir && cmp %t/a.mlir %t/b.mlir
!b = !quant.uniform<i8:f32:{0:1, 1:2}, {{0.5, 2.0:1}, {1.0:-1, 0.25}}>
!rows = !quant.uniform<u4<0:14>:f32:{0:2}, {{0.5:7}, {2.0}}>
!w = !quant.uniform<i4:f32:{0:2}, {{0.5}, {2.0}}>
func.func private @whole(%x: tensor<2x4x!b>) -> tensor<2x4x!b> {
  return %x : tensor<2x4x!b>
}
func.func public @main() {
  %x = stablehlo.constant dense<[[1.0, -2.0, 3.0, 5.0], [1.0, -2.0, 3.0, 100.0]]> : tensor<2x4xf32>
  %0 = stablehlo.uniform_quantize %x : (tensor<2x4xf32>) -> tensor<2x4x!b>
  %1 = stablehlo.bitcast_convert %0 : (tensor<2x4x!b>) -> tensor<2x4xi8>
  check.expect_eq_const %1, dense<[[2, -4, 2, 4], [0, -3, 12, 127]]> : tensor<2x4xi8>
  %2 = func.call @whole(%0) : (tensor<2x4x!b>) -> tensor<2x4x!b>
  %n = stablehlo.constant dense<0> : tensor<i32>
  %3:2 = stablehlo.while(%i = %n, %y = %2) : tensor<i32>, tensor<2x4x!b>
    cond {
      %c = stablehlo.constant dense<2> : tensor<i32>
      %p = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %y : tensor<i32>, tensor<2x4x!b>
    }
  %4 = stablehlo.uniform_dequantize %3#1 : (tensor<2x4x!b>) -> tensor<2x4xf32>
  check.expect_eq_const %4, dense<[[1.0, -2.0, 2.0, 6.0], [1.0, -2.0, 3.0, 31.75]]> : tensor<2x4xf32>
  %z = stablehlo.constant dense<[[1.0, -4.0], [1.5, 9.0], [1.0, -4.0], [9.0, 90.0]]> : tensor<4x2xf32>
  %5 = stablehlo.uniform_quantize %z : (tensor<4x2xf32>) -> tensor<4x2x!rows>
  %6 = stablehlo.uniform_dequantize %5 : (tensor<4x2x!rows>) -> tensor<4x2xf32>
  check.expect_eq_const %6, dense<[[1.0, -3.5], [1.5, 3.5], [0.0, 0.0], [8.0, 28.0]]> : tensor<4x2xf32>
  %w = stablehlo.constant() <{value = dense<[[1, 2], [3, 4], [5, 6], [7, -8]]> : tensor<4x2xi4>}> : () -> tensor<4x2x!w>
  %7 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x2x!w>) -> tensor<2x2xf32>
  check.expect_eq_const %7, dense<[[97.5, -47.0], [1427.5, -1567.0]]> : tensor<2x2xf32>
  return
}
