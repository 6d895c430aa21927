// Pairs of tensors. Used by complex_parts.mlir.
func.func public @main(%a0: tensor<96x80xf32>, %a1: tensor<80x64xf32>, %a2: tensor<96x80xf32>, %a3: tensor<192x40xf32>, %a4: tensor<40xf32>, %a5: tensor<96x80xf32>, %a6: tensor<9x80xf32>, %a7: tensor<96x80xf32>, %a8: tensor<96x80xf32>, %a9: tensor<80x64xf32>, %a10: tensor<2x80x64xf32>, %b0: tensor<96x80xf32>, %b1: tensor<80x64xf32>, %b2: tensor<96x80xf32>, %b3: tensor<192x40xf32>, %b4: tensor<40xf32>, %b5: tensor<96x80xf32>, %b6: tensor<9x80xf32>, %b7: tensor<96x80xf32>, %b8: tensor<96x80xf32>, %b9: tensor<80x64xf32>, %b10: tensor<2x80x64xf32>) {
  "check.expect_almost_eq"(%a0, %b0) {tolerance = 2.0e-5 : f64} : (tensor<96x80xf32>, tensor<96x80xf32>) -> ()
  "check.expect_almost_eq"(%a1, %b1) {tolerance = 2.0e-5 : f64} : (tensor<80x64xf32>, tensor<80x64xf32>) -> ()
  "check.expect_almost_eq"(%a2, %b2) {tolerance = 2.0e-5 : f64} : (tensor<96x80xf32>, tensor<96x80xf32>) -> ()
  "check.expect_almost_eq"(%a3, %b3) {tolerance = 2.0e-5 : f64} : (tensor<192x40xf32>, tensor<192x40xf32>) -> ()
  "check.expect_almost_eq"(%a4, %b4) {tolerance = 2.0e-5 : f64} : (tensor<40xf32>, tensor<40xf32>) -> ()
  "check.expect_almost_eq"(%a5, %b5) {tolerance = 2.0e-5 : f64} : (tensor<96x80xf32>, tensor<96x80xf32>) -> ()
  "check.expect_almost_eq"(%a6, %b6) {tolerance = 2.0e-5 : f64} : (tensor<9x80xf32>, tensor<9x80xf32>) -> ()
  "check.expect_almost_eq"(%a7, %b7) {tolerance = 2.0e-5 : f64} : (tensor<96x80xf32>, tensor<96x80xf32>) -> ()
  "check.expect_almost_eq"(%a8, %b8) {tolerance = 2.0e-5 : f64} : (tensor<96x80xf32>, tensor<96x80xf32>) -> ()
  "check.expect_almost_eq"(%a9, %b9) {tolerance = 2.0e-5 : f64} : (tensor<80x64xf32>, tensor<80x64xf32>) -> ()
  "check.expect_almost_eq"(%a10, %b10) {tolerance = 2.0e-5 : f64} : (tensor<2x80x64xf32>, tensor<2x80x64xf32>) -> ()
  return
}
