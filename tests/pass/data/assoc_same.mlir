// Two pairs of tensors within 80, of numbers from 80,000 to 150,000: products of bf16. Used by assoc.mlir and assoc_flags.mlir.
func.func public @main(%a0: tensor<4x128xf32>, %a1: tensor<4x128xf32>, %b0: tensor<4x128xf32>, %b1: tensor<4x128xf32>) {
  "check.expect_almost_eq"(%a0, %b0) {tolerance = 80.0 : f64} : (tensor<4x128xf32>, tensor<4x128xf32>) -> ()
  "check.expect_almost_eq"(%a1, %b1) {tolerance = 80.0 : f64} : (tensor<4x128xf32>, tensor<4x128xf32>) -> ()
  func.return
}
