// Constants of every element type: packed bools, splats, narrow numbers, none at all.
// run: otrn compile %s --emit=mlirbc -o %t/1.mlirbc
// run: otrn compile %t/1.mlirbc --emit=mlir --locs -o %t/2.mlir
// run: otrn compile %t/2.mlir --emit=mlirbc -o %t/3.mlirbc
// run: cmp %t/1.mlirbc %t/3.mlirbc && otrn compile %t/1.mlirbc --emit=mlir
// expect: dense<[true, false, true, true, false, false, true, false, true]> : tensor<9xi1>
// expect: dense<true> : tensor<i1>
// expect: dense<false> : tensor<100xi1>
// expect: dense<[true, false]> : tensor<2xi1>
// expect: dense<[-2, 1]> : tensor<2xi2>
// expect: dense<[15, 0]> : tensor<2xui4>
// expect: dense<[9223372036854775807, -9223372036854775808]> : tensor<2xi64>
// expect: dense<18446744073709551615> : tensor<ui64>
// expect: dense<[1.500000e+00, -6.000000e+00]> : tensor<2xf4E2M1FN>
// expect: dense<[4.480000e+02, 0x7F]> : tensor<2xf8E4M3FN>
// expect: dense<[1.000000e+00, 0x7FC0]> : tensor<2xbf16>
// expect: dense<(1.000000e+00,-0.000000e+00)> : tensor<complex<f32>>
// expect: dense<> : tensor<2x0xf32>
// expect: dense<2.500000e-01> : tensor<4x4xf64>
// expect: tensor<2x2x!quant.uniform<i8<-127:127>:f32:1, {5.000000e-01, 2.500000e-01:-7}>>
func.func @main() -> tensor<9xi1> {
  %0 = stablehlo.constant dense<[true, false, true, true, false, false, true, false, true]> : tensor<9xi1>
  %1 = stablehlo.constant dense<true> : tensor<i1>
  %2 = stablehlo.constant dense<false> : tensor<100xi1>
  %3 = stablehlo.constant dense<[true, false]> : tensor<2xi1>
  %4 = stablehlo.constant dense<[-2, 1]> : tensor<2xi2>
  %5 = stablehlo.constant dense<[15, 0]> : tensor<2xui4>
  %6 = stablehlo.constant dense<[9223372036854775807, -9223372036854775808]> : tensor<2xi64>
  %7 = stablehlo.constant dense<18446744073709551615> : tensor<ui64>
  %8 = stablehlo.constant dense<[1.5, -6.0]> : tensor<2xf4E2M1FN>
  %9 = stablehlo.constant dense<[448.0, 0x7F]> : tensor<2xf8E4M3FN>
  %10 = stablehlo.constant dense<[1.0, 0x7FC0]> : tensor<2xbf16>
  %11 = stablehlo.constant dense<(1.0, -0.0)> : tensor<complex<f32>>
  %12 = stablehlo.constant dense<> : tensor<2x0xf32>
  %13 = stablehlo.constant dense<[[0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25], [0.25, 0.25, 0.25, 0.25]]> : tensor<4x4xf64>
  %14 = stablehlo.constant dense<1.0> : tensor<2x2xf32>
  %15 = stablehlo.uniform_quantize %14 : (tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8<-127:127>:f32:1, {0.5, 0.25:-7}>>
  return %0 : tensor<9xi1>
}
