// Twelve pairs of tensors. Used by attention_groups.mlir.
func.func public @main(%a0: tensor<1x256x2x3x32xf32>, %a1: tensor<1x256x2x3x32xf32>, %a2: tensor<1x256x2x32xf32>, %a3: tensor<1x256x2x32xf32>, %a4: tensor<1x192x2x3x48xf32>, %a5: tensor<1x192x2x3x48xf32>, %a6: tensor<1x192x2x48xf32>, %a7: tensor<1x192x2x48xf32>, %a8: tensor<1x256x2x3x64xbf16>, %a9: tensor<1x256x2x3x64xbf16>, %a10: tensor<1x256x2x64xbf16>, %a11: tensor<1x256x2x64xbf16>, %b0: tensor<1x256x2x3x32xf32>, %b1: tensor<1x256x2x3x32xf32>, %b2: tensor<1x256x2x32xf32>, %b3: tensor<1x256x2x32xf32>, %b4: tensor<1x192x2x3x48xf32>, %b5: tensor<1x192x2x3x48xf32>, %b6: tensor<1x192x2x48xf32>, %b7: tensor<1x192x2x48xf32>, %b8: tensor<1x256x2x3x64xbf16>, %b9: tensor<1x256x2x3x64xbf16>, %b10: tensor<1x256x2x64xbf16>, %b11: tensor<1x256x2x64xbf16>) {
  "check.expect_almost_eq"(%a0, %b0) {tolerance = 1.0e-5 : f64} : (tensor<1x256x2x3x32xf32>, tensor<1x256x2x3x32xf32>) -> ()
  "check.expect_almost_eq"(%a1, %b1) {tolerance = 1.0e-5 : f64} : (tensor<1x256x2x3x32xf32>, tensor<1x256x2x3x32xf32>) -> ()
  "check.expect_almost_eq"(%a2, %b2) {tolerance = 1.0e-5 : f64} : (tensor<1x256x2x32xf32>, tensor<1x256x2x32xf32>) -> ()
  "check.expect_almost_eq"(%a3, %b3) {tolerance = 1.0e-5 : f64} : (tensor<1x256x2x32xf32>, tensor<1x256x2x32xf32>) -> ()
  "check.expect_almost_eq"(%a4, %b4) {tolerance = 1.0e-5 : f64} : (tensor<1x192x2x3x48xf32>, tensor<1x192x2x3x48xf32>) -> ()
  "check.expect_almost_eq"(%a5, %b5) {tolerance = 1.0e-5 : f64} : (tensor<1x192x2x3x48xf32>, tensor<1x192x2x3x48xf32>) -> ()
  "check.expect_almost_eq"(%a6, %b6) {tolerance = 1.0e-5 : f64} : (tensor<1x192x2x48xf32>, tensor<1x192x2x48xf32>) -> ()
  "check.expect_almost_eq"(%a7, %b7) {tolerance = 1.0e-5 : f64} : (tensor<1x192x2x48xf32>, tensor<1x192x2x48xf32>) -> ()
  "check.expect_almost_eq"(%a8, %b8) {tolerance = 8.0e-3 : f64} : (tensor<1x256x2x3x64xbf16>, tensor<1x256x2x3x64xbf16>) -> ()
  "check.expect_almost_eq"(%a9, %b9) {tolerance = 8.0e-3 : f64} : (tensor<1x256x2x3x64xbf16>, tensor<1x256x2x3x64xbf16>) -> ()
  "check.expect_almost_eq"(%a10, %b10) {tolerance = 8.0e-3 : f64} : (tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>) -> ()
  "check.expect_almost_eq"(%a11, %b11) {tolerance = 8.0e-3 : f64} : (tensor<1x256x2x64xbf16>, tensor<1x256x2x64xbf16>) -> ()
  return
}
