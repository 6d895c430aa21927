// Twelve pairs of tensors. Used by attention_window.mlir.
func.func public @main(%a0: tensor<1x1100x32xf32>, %a1: tensor<1x1100x32xf32>, %a2: tensor<1x1100x32xf32>, %a3: tensor<1x1100x32xf32>, %a4: tensor<1x1100x32xf32>, %a5: tensor<1x1100x32xf32>, %a6: tensor<1x1100x32xf32>, %a7: tensor<1x1100x32xf32>, %a8: tensor<1x1100x32xf32>, %a9: tensor<1x1100x32xf32>, %a10: tensor<1x1100x32xf32>, %a11: tensor<1x1100x32xf32>, %b0: tensor<1x1100x32xf32>, %b1: tensor<1x1100x32xf32>, %b2: tensor<1x1100x32xf32>, %b3: tensor<1x1100x32xf32>, %b4: tensor<1x1100x32xf32>, %b5: tensor<1x1100x32xf32>, %b6: tensor<1x1100x32xf32>, %b7: tensor<1x1100x32xf32>, %b8: tensor<1x1100x32xf32>, %b9: tensor<1x1100x32xf32>, %b10: tensor<1x1100x32xf32>, %b11: tensor<1x1100x32xf32>) {
  "check.expect_almost_eq"(%a0, %b0) {tolerance = 2.0e-5 : f64} : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> ()
  "check.expect_almost_eq"(%a1, %b1) {tolerance = 2.0e-5 : f64} : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> ()
  "check.expect_almost_eq"(%a2, %b2) {tolerance = 2.0e-5 : f64} : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> ()
  "check.expect_almost_eq"(%a3, %b3) {tolerance = 2.0e-5 : f64} : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> ()
  "check.expect_almost_eq"(%a4, %b4) {tolerance = 2.0e-5 : f64} : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> ()
  "check.expect_almost_eq"(%a5, %b5) {tolerance = 2.0e-5 : f64} : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> ()
  "check.expect_almost_eq"(%a6, %b6) {tolerance = 2.0e-5 : f64} : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> ()
  "check.expect_almost_eq"(%a7, %b7) {tolerance = 2.0e-5 : f64} : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> ()
  "check.expect_almost_eq"(%a8, %b8) {tolerance = 2.0e-5 : f64} : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> ()
  "check.expect_almost_eq"(%a9, %b9) {tolerance = 2.0e-5 : f64} : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> ()
  "check.expect_almost_eq"(%a10, %b10) {tolerance = 2.0e-5 : f64} : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> ()
  "check.expect_almost_eq"(%a11, %b11) {tolerance = 2.0e-5 : f64} : (tensor<1x1100x32xf32>, tensor<1x1100x32xf32>) -> ()
  func.return
}
