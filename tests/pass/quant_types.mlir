// One scale, one scale per index of an axis, a storage range smaller than its type, unsigned storage, and from
// one scale to another. Halves go to even; what lies outside the range goes to its end.
// run: otrn eval %s
// run: otrn run %s
!q = !quant.uniform<i8:f32, 0.5:3>
!narrow = !quant.uniform<i8<-7:7>:f32, 0.5:3>
!axis = !quant.uniform<i8:f32:1, {0.1:-30, 0.5, 2.0:7}>
!u = !quant.uniform<u8:f32, 0.25:10>
!other = !quant.uniform<i8:f32, 0.2:-1>
!wide = !quant.uniform<i32:f32, 1.0e-5>
!narrower = !quant.uniform<i8:f32, 0.1>
!half = !quant.uniform<i8:bf16, 0.5:-1>
func.func public @main() {
  %x = stablehlo.constant dense<[[1.0, -2.0, 0.25], [100.0, -100.0, -0.25]]> : tensor<2x3xf32>
  %0 = stablehlo.uniform_quantize %x : (tensor<2x3xf32>) -> tensor<2x3x!q>
  %1 = stablehlo.bitcast_convert %0 : (tensor<2x3x!q>) -> tensor<2x3xi8>
  check.expect_eq_const %1, dense<[[5, -1, 4], [127, -128, 2]]> : tensor<2x3xi8>
  %2 = stablehlo.uniform_quantize %x : (tensor<2x3xf32>) -> tensor<2x3x!narrow>
  %3 = stablehlo.bitcast_convert %2 : (tensor<2x3x!narrow>) -> tensor<2x3xi8>
  check.expect_eq_const %3, dense<[[5, -1, 4], [7, -7, 2]]> : tensor<2x3xi8>

  %4 = stablehlo.uniform_quantize %x : (tensor<2x3xf32>) -> tensor<2x3x!axis>
  %5 = stablehlo.bitcast_convert %4 : (tensor<2x3x!axis>) -> tensor<2x3xi8>
  check.expect_eq_const %5, dense<[[-20, -4, 7], [127, -128, 7]]> : tensor<2x3xi8>
  %6 = stablehlo.uniform_dequantize %4 : (tensor<2x3x!axis>) -> tensor<2x3xf32>
  check.expect_almost_eq_const %6, dense<[[1.0, -2.0, 0.0], [15.7, -64.0, 0.0]]> : tensor<2x3xf32>

  %y = stablehlo.constant dense<[[-1.0, 0.3], [5.0, 300.0]]> : tensor<2x2xf32>
  %7 = stablehlo.uniform_quantize %y : (tensor<2x2xf32>) -> tensor<2x2x!u>
  %8 = stablehlo.bitcast_convert %7 : (tensor<2x2x!u>) -> tensor<2x2xui8>
  check.expect_eq_const %8, dense<[[6, 11], [30, 255]]> : tensor<2x2xui8>

  %9 = "stablehlo.constant"() <{value = dense<[10, -128, 127, 0]> : tensor<4xi8>}> : () -> tensor<4x!q>
  %10 = stablehlo.uniform_quantize %9 : (tensor<4x!q>) -> tensor<4x!other>
  %11 = stablehlo.bitcast_convert %10 : (tensor<4x!other>) -> tensor<4xi8>
  check.expect_eq_const %11, dense<[16, -128, 127, -8]> : tensor<4xi8>
  %12 = "stablehlo.constant"() <{value = dense<[1000000, -5]> : tensor<2xi32>}> : () -> tensor<2x!wide>
  %13 = stablehlo.uniform_quantize %12 : (tensor<2x!wide>) -> tensor<2x!narrower>
  %14 = stablehlo.bitcast_convert %13 : (tensor<2x!narrower>) -> tensor<2xi8>
  check.expect_eq_const %14, dense<[100, 0]> : tensor<2xi8>

  %h = stablehlo.constant dense<[1.0, -2.0, 1000.0]> : tensor<3xbf16>
  %15 = stablehlo.uniform_quantize %h : (tensor<3xbf16>) -> tensor<3x!half>
  %16 = stablehlo.uniform_dequantize %15 : (tensor<3x!half>) -> tensor<3xbf16>
  check.expect_eq_const %16, dense<[1.0, -2.0, 64.0]> : tensor<3xbf16>

  %e = stablehlo.constant dense<> : tensor<0x3xf32>
  %17 = stablehlo.uniform_quantize %e : (tensor<0x3xf32>) -> tensor<0x3x!axis>
  %18 = stablehlo.uniform_dequantize %17 : (tensor<0x3x!axis>) -> tensor<0x3xf32>
  check.expect_eq_const %18, dense<> : tensor<0x3xf32>
  return
}
