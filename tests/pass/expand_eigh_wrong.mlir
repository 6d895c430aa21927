// run: otrn run %s
// status: 1
// expect: error[VERIFY]
// expect: @Eigh of shapes that do not fit each other
func.func @main(%a: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %v, %w = stablehlo.custom_call @Eigh(%a) {backend_config = "1,1,100,1e-6"} : (tensor<3x2xf32>) -> (tensor<3x2xf32>, tensor<2xf32>)
  return %v : tensor<3x2xf32>
}
