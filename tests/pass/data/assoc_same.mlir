// Two pairs of tensors within 1e-3, of numbers up to some hundreds. Used by assoc.mlir.
func.func public @main(%a0: tensor<4x128xf32>, %a1: tensor<4x128xf32>, %b0: tensor<4x128xf32>, %b1: tensor<4x128xf32>) {
  "check.expect_almost_eq"(%a0, %b0) {tolerance = 1.0e-3 : f64} : (tensor<4x128xf32>, tensor<4x128xf32>) -> ()
  "check.expect_almost_eq"(%a1, %b1) {tolerance = 1.0e-3 : f64} : (tensor<4x128xf32>, tensor<4x128xf32>) -> ()
  func.return
}
