// An attribute without which the op has no meaning.
// run: otrn compile %s -o %t/out.otrn
// expect: bad_missing.mlir:6:3: error[VERIFY]: stablehlo.dot_general: the attribute dot_dimension_numbers is missing
// status: 1
func.func public @main(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = "stablehlo.dot_general"(%a, %a) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
