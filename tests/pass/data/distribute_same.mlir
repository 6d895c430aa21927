// Two vectors within 1e-5. Used by distribute.mlir.
func.func public @main(%a: tensor<65536xf32>, %b: tensor<65536xf32>) {
  "check.expect_almost_eq"(%a, %b) {tolerance = 1.0e-5 : f64} : (tensor<65536xf32>, tensor<65536xf32>) -> ()
  return
}
