// Three pairs of tensors. Used by sums_long.mlir.
func.func public @main(%a0: tensor<3x312x315xf32>, %a1: tensor<3xf32>, %a2: tensor<2xf32>, %b0: tensor<3x312x315xf32>, %b1: tensor<3xf32>, %b2: tensor<2xf32>) {
  "check.expect_almost_eq"(%a0, %b0) {tolerance = 1.0e-6 : f64} : (tensor<3x312x315xf32>, tensor<3x312x315xf32>) -> ()
  "check.expect_eq"(%a1, %b1) : (tensor<3xf32>, tensor<3xf32>) -> ()
  "check.expect_almost_eq"(%a2, %b2) {tolerance = 1.0e-3 : f64} : (tensor<2xf32>, tensor<2xf32>) -> ()
  return
}
