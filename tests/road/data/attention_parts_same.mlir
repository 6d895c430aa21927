// Three pairs of tensors. Used by attention_parts.mlir.
func.func public @main(%a0: tensor<8x1050x128xf32>, %a1: tensor<1050x128xf32>, %a2: tensor<1050x128xf32>, %b0: tensor<8x1050x128xf32>, %b1: tensor<1050x128xf32>, %b2: tensor<1050x128xf32>) {
  "check.expect_almost_eq"(%a0, %b0) {tolerance = 2.0e-5 : f64} : (tensor<8x1050x128xf32>, tensor<8x1050x128xf32>) -> ()
  "check.expect_almost_eq"(%a1, %b1) {tolerance = 2.0e-5 : f64} : (tensor<1050x128xf32>, tensor<1050x128xf32>) -> ()
  "check.expect_almost_eq"(%a2, %b2) {tolerance = 2.0e-5 : f64} : (tensor<1050x128xf32>, tensor<1050x128xf32>) -> ()
  func.return
}
