// Operations compute on the numbers that the integers stand for; each operand and result has its own scale.
// Products: both sides quantised, only the weights quantised (per axis too), an accumulator of 32 bits.
// run: otrn eval %s
// run: otrn run %s
!a = !quant.uniform<i8:f32, 0.5:3>
!b = !quant.uniform<i8:f32, 0.25:-4>
!sum = !quant.uniform<i8:f32, 0.5>
!one = !quant.uniform<i8:f32, 1.0>
!e = !quant.uniform<i8:f32, 0.01:-128>
!l = !quant.uniform<i8:f32, 0.5:1>
!r = !quant.uniform<i8:f32, 0.25>
!k = !quant.uniform<i8:f32, 0.25:-1>
!acc = !quant.uniform<i32:f32, 0.125>
!out = !quant.uniform<i8:f32, 0.5:5>
!w = !quant.uniform<i8:f32:1, {0.25, 0.5}>
func.func public @main() {
  %a = "stablehlo.constant"() <{value = dense<[10, -20, 127]> : tensor<3xi8>}> : () -> tensor<3x!a>
  %b = "stablehlo.constant"() <{value = dense<[1, 2, -128]> : tensor<3xi8>}> : () -> tensor<3x!b>
  %0 = stablehlo.add %a, %b : (tensor<3x!a>, tensor<3x!b>) -> tensor<3x!sum>
  %1 = stablehlo.bitcast_convert %0 : (tensor<3x!sum>) -> tensor<3xi8>
  check.expect_eq_const %1, dense<[10, -20, 62]> : tensor<3xi8>
  %2 = stablehlo.multiply %a, %b : (tensor<3x!a>, tensor<3x!b>) -> tensor<3x!one>
  %3 = stablehlo.bitcast_convert %2 : (tensor<3x!one>) -> tensor<3xi8>
  check.expect_eq_const %3, dense<[4, -17, -128]> : tensor<3xi8>
  %4 = stablehlo.compare LT, %a, %b : (tensor<3x!a>, tensor<3x!b>) -> tensor<3xi1>
  check.expect_eq_const %4, dense<[false, true, false]> : tensor<3xi1>
  %c = "stablehlo.constant"() <{value = dense<[1, 2, 3]> : tensor<3xi8>}> : () -> tensor<3x!a>
  %5 = stablehlo.exponential %c : (tensor<3x!a>) -> tensor<3x!e>
  %6 = stablehlo.bitcast_convert %5 : (tensor<3x!e>) -> tensor<3xi8>
  check.expect_eq_const %6, dense<[-91, -67, -28]> : tensor<3xi8>

  %l = "stablehlo.constant"() <{value = dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>}> : () -> tensor<2x2x!l>
  %r = "stablehlo.constant"() <{value = dense<[[5, -6], [7, 8]]> : tensor<2x2xi8>}> : () -> tensor<2x2x!r>
  %7 = stablehlo.dot_general %l, %r, contracting_dims = [1] x [0] : (tensor<2x2x!l>, tensor<2x2x!r>) -> tensor<2x2x!acc>
  %8 = stablehlo.bitcast_convert %7 : (tensor<2x2x!acc>) -> tensor<2x2xi32>
  check.expect_eq_const %8, dense<[[7, 8], [31, 12]]> : tensor<2x2xi32>
  %9 = stablehlo.uniform_quantize %7 : (tensor<2x2x!acc>) -> tensor<2x2x!out>
  %10 = stablehlo.bitcast_convert %9 : (tensor<2x2x!out>) -> tensor<2x2xi8>
  check.expect_eq_const %10, dense<[[7, 7], [13, 8]]> : tensor<2x2xi8>

  %x = stablehlo.constant dense<[[0.0, 0.5], [1.0, 1.5]]> : tensor<2x2xf32>
  %w = "stablehlo.constant"() <{value = dense<[[5, -6], [7, 8]]> : tensor<2x2xi8>}> : () -> tensor<2x2x!w>
  %11 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2x!w>) -> tensor<2x2xf32>
  check.expect_almost_eq_const %11, dense<[[0.875, 2.0], [3.875, 3.0]]> : tensor<2x2xf32>

  %image = stablehlo.constant dense<[[[[0.0], [0.5]], [[1.0], [1.5]]]]> : tensor<1x2x2x1xf32>
  %qi = stablehlo.uniform_quantize %image : (tensor<1x2x2x1xf32>) -> tensor<1x2x2x1x!l>
  %kernel = "stablehlo.constant"() <{value = dense<[[[[5]], [[-6]]]]> : tensor<1x2x1x1xi8>}> : () -> tensor<1x2x1x1x!k>
  %12 = stablehlo.convolution(%qi, %kernel) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x2x1x!l>, tensor<1x2x1x1x!k>) -> tensor<1x2x1x1x!acc>
  %13 = stablehlo.uniform_dequantize %12 : (tensor<1x2x1x1x!acc>) -> tensor<1x2x1x1xf32>
  check.expect_almost_eq_const %13, dense<[[[[-0.625]], [[-0.375]]]]> : tensor<1x2x1x1xf32>
  return
}
