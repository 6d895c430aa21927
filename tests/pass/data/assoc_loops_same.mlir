// Three pairs of tensors: numbers up to 114 of products of bf16 within their rounding, and up to 90,000 of those of fp32 sums. Used by assoc_loops.mlir.
func.func public @main(%a0: tensor<3x4x128xf32>, %a1: tensor<3x4x128xf32>, %a2: tensor<3x4x128xf32>, %b0: tensor<3x4x128xf32>, %b1: tensor<3x4x128xf32>, %b2: tensor<3x4x128xf32>) {
  "check.expect_almost_eq"(%a0, %b0) {tolerance = 0.2 : f64} : (tensor<3x4x128xf32>, tensor<3x4x128xf32>) -> ()
  "check.expect_almost_eq"(%a1, %b1) {tolerance = 0.01 : f64} : (tensor<3x4x128xf32>, tensor<3x4x128xf32>) -> ()
  "check.expect_almost_eq"(%a2, %b2) {tolerance = 1.0 : f64} : (tensor<3x4x128xf32>, tensor<3x4x128xf32>) -> ()
  func.return
}
