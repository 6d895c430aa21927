// What only moves elements works on the stored integers; regions take and give stored integers; a shape op keeps
// the scales of its axis.
// run: otrn eval %s
// run: otrn run %s
!q = !quant.uniform<i8:f32, 0.5:3>
!other = !quant.uniform<i8:f32, 0.25>
!rows = !quant.uniform<i8:f32:0, {0.5, 2.0}>
!cols = !quant.uniform<i8:f32:1, {0.5, 2.0}>
func.func private @hand_on(%x: tensor<4x!q>) -> tensor<4x!q> {
  return %x : tensor<4x!q>
}
func.func public @main() {
  %c = "stablehlo.constant"() <{value = dense<[9, -5, 100, 7]> : tensor<4xi8>}> : () -> tensor<4x!q>
  %x = func.call @hand_on(%c) : (tensor<4x!q>) -> tensor<4x!q>
  %i = stablehlo.constant dense<1> : tensor<i32>
  %p = "stablehlo.constant"() <{value = dense<3> : tensor<i8>}> : () -> tensor<!q>
  %0 = stablehlo.reshape %x : (tensor<4x!q>) -> tensor<2x2x!q>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x2x!q>) -> tensor<2x2x!q>
  %2 = stablehlo.dynamic_slice %1, %i, %i, sizes = [1, 2] : (tensor<2x2x!q>, tensor<i32>, tensor<i32>) -> tensor<1x2x!q>
  %3 = stablehlo.concatenate %1, %2, dim = 0 : (tensor<2x2x!q>, tensor<1x2x!q>) -> tensor<3x2x!q>
  %4 = stablehlo.pad %3, %p, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<3x2x!q>, tensor<!q>) -> tensor<3x3x!q>
  %5 = stablehlo.bitcast_convert %4 : (tensor<3x3x!q>) -> tensor<3x3xi8>
  check.expect_eq_const %5, dense<[[3, 9, 100], [3, -5, 7], [3, -5, 7]]> : tensor<3x3xi8>

  // max over elements: the region compares and chooses stored values
  %6 = stablehlo.reduce(%x init: %p) across dimensions = [0] : (tensor<4x!q>, tensor<!q>) -> tensor<!q>
   reducer(%a: tensor<!q>, %b: tensor<!q>) {
    %m = stablehlo.maximum %a, %b : tensor<!q>
    stablehlo.return %m : tensor<!q>
  }
  %7 = stablehlo.bitcast_convert %6 : (tensor<!q>) -> tensor<i8>
  check.expect_eq_const %7, dense<100> : tensor<i8>
  %8 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<!q>, %b: tensor<!q>):
    %lt = stablehlo.compare LT, %a, %b : (tensor<!q>, tensor<!q>) -> tensor<i1>
    stablehlo.return %lt : tensor<i1>
  }) : (tensor<4x!q>) -> tensor<4x!q>
  %9 = stablehlo.bitcast_convert %8 : (tensor<4x!q>) -> tensor<4xi8>
  check.expect_eq_const %9, dense<[-5, 7, 9, 100]> : tensor<4xi8>

  // three rounds of x + 1.5
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %k = "stablehlo.constant"() <{value = dense<6> : tensor<4xi8>}> : () -> tensor<4x!other>
  %10:2 = stablehlo.while(%n = %zero, %v = %x) : tensor<i32>, tensor<4x!q>
  cond {
    %three = stablehlo.constant dense<3> : tensor<i32>
    %go = stablehlo.compare LT, %n, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %n, %one : tensor<i32>
    %more = stablehlo.add %v, %k : (tensor<4x!q>, tensor<4x!other>) -> tensor<4x!q>
    stablehlo.return %next, %more : tensor<i32>, tensor<4x!q>
  }
  %11 = stablehlo.bitcast_convert %10#1 : (tensor<4x!q>) -> tensor<4xi8>
  check.expect_eq_const %11, dense<[18, 4, 109, 16]> : tensor<4xi8>

  %r = "stablehlo.constant"() <{value = dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>}> : () -> tensor<2x2x!rows>
  %12 = stablehlo.transpose %r, dims = [1, 0] : (tensor<2x2x!rows>) -> tensor<2x2x!cols>
  %13 = stablehlo.uniform_dequantize %12 : (tensor<2x2x!cols>) -> tensor<2x2xf32>
  check.expect_eq_const %13, dense<[[0.5, 6.0], [1.0, 8.0]]> : tensor<2x2xf32>
  return
}
