// An operand whose given type is not its own.
// run: otrn compile %s -o %t/out.otrn
// expect: bad_type.mlir:6:3: error[VERIFY]: stablehlo.add: operand 1 is tensor<3xf32>, but its type is given as tensor<2xf32>
// status: 1
func.func public @main(%a: tensor<2xf32>, %b: tensor<3xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %a, %b : tensor<2xf32>
  return %0 : tensor<2xf32>
}
