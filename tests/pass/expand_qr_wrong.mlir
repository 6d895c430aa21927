// run: otrn run %s
// status: 1
// expect: error[VERIFY]
// expect: @Qr of shapes that do not fit each other
func.func @main(%a: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %qr, %taus = stablehlo.custom_call @Qr(%a) : (tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<4x2xf32>)
  return %qr : tensor<3x2xf32>
}
