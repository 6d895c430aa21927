// run: otrn eval %s
// status: 1
// expect: error[VERIFY]: stablehlo.uniform_quantize: tensor<2xf64> and tensor<2x!quant.uniform<i8:f32, 5.000000e-01>> express different types (C2)
func.func public @main(%x: tensor<2xf64>) -> tensor<2x!quant.uniform<i8:f32, 0.5>> {
  %0 = stablehlo.uniform_quantize %x : (tensor<2xf64>) -> tensor<2x!quant.uniform<i8:f32, 0.5>>
  return %0 : tensor<2x!quant.uniform<i8:f32, 0.5>>
}
