// Tensors of the chip and the evaluator, within rounding of sums of 512 products. Used by scores_numbers.mlir and scores_given.mlir.
func.func public @main(%a0: tensor<2x512x64xf32>, %a1: tensor<2x512x64xf32>, %b0: tensor<2x512x64xf32>, %b1: tensor<2x512x64xf32>) {
  "check.expect_almost_eq"(%a0, %b0) {tolerance = 1.0e-4 : f64} : (tensor<2x512x64xf32>, tensor<2x512x64xf32>) -> ()
  "check.expect_almost_eq"(%a1, %b1) {tolerance = 1.0e-4 : f64} : (tensor<2x512x64xf32>, tensor<2x512x64xf32>) -> ()
  func.return
}
