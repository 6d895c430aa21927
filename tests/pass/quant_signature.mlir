// Quantised arguments and results are integers of their storage type to the caller; moving them needs no floats.
// run: otrn compile %s --dump=quant -o %t/out.otrn
// expect: @main(%arg0: tensor<2x3xi8>) -> (tensor<3x2xi8>
// expect: stablehlo.transpose
// expect-not: f32
// expect-not: !quant
!q = !quant.uniform<i8<-127:127>:f32, 0.5:3>
func.func public @main(%x: tensor<2x3x!q>) -> tensor<3x2x!q> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3x!q>) -> tensor<3x2x!q>
  return %0 : tensor<3x2x!q>
}
