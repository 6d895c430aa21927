// The result's shape does not follow from the operands': the constraint is named, and the user's line.
// run: otrn compile %s -o %t/out.otrn
// expect: net.py:3:9: error[VERIFY]: stablehlo.dot_general: dimension 1 of tensor<2x3xf32> and dimension 0 of tensor<4x5xf32> differ (C10)
// status: 1
func.func public @main(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) -> tensor<2x5xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32> loc("net.py":3:9)
  return %0 : tensor<2x5xf32>
}
