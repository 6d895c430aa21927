// Twelve pairs of tensors: fp32 within 1e-5, bf16 within an ulp of their largest. Used by attention.mlir.
func.func public @main(%a0: tensor<2x2x200x48xf32>, %a1: tensor<2x2x200x48xf32>, %a2: tensor<2x2x200x48xf32>, %a3: tensor<2x2x200x48xf32>, %a4: tensor<2x160x3x32xf32>, %a5: tensor<2x160x3x32xf32>, %a6: tensor<2x224x3x32xf32>, %a7: tensor<2x224x3x32xf32>, %a8: tensor<2x256x1x64xbf16>, %a9: tensor<2x256x1x64xbf16>, %a10: tensor<2x256x1x64xbf16>, %a11: tensor<2x256x1x64xbf16>, %b0: tensor<2x2x200x48xf32>, %b1: tensor<2x2x200x48xf32>, %b2: tensor<2x2x200x48xf32>, %b3: tensor<2x2x200x48xf32>, %b4: tensor<2x160x3x32xf32>, %b5: tensor<2x160x3x32xf32>, %b6: tensor<2x224x3x32xf32>, %b7: tensor<2x224x3x32xf32>, %b8: tensor<2x256x1x64xbf16>, %b9: tensor<2x256x1x64xbf16>, %b10: tensor<2x256x1x64xbf16>, %b11: tensor<2x256x1x64xbf16>) {
  "check.expect_almost_eq"(%a0, %b0) {tolerance = 1.0e-5 : f64} : (tensor<2x2x200x48xf32>, tensor<2x2x200x48xf32>) -> ()
  "check.expect_almost_eq"(%a1, %b1) {tolerance = 1.0e-5 : f64} : (tensor<2x2x200x48xf32>, tensor<2x2x200x48xf32>) -> ()
  "check.expect_almost_eq"(%a2, %b2) {tolerance = 1.0e-5 : f64} : (tensor<2x2x200x48xf32>, tensor<2x2x200x48xf32>) -> ()
  "check.expect_almost_eq"(%a3, %b3) {tolerance = 1.0e-5 : f64} : (tensor<2x2x200x48xf32>, tensor<2x2x200x48xf32>) -> ()
  "check.expect_almost_eq"(%a4, %b4) {tolerance = 1.0e-5 : f64} : (tensor<2x160x3x32xf32>, tensor<2x160x3x32xf32>) -> ()
  "check.expect_almost_eq"(%a5, %b5) {tolerance = 1.0e-5 : f64} : (tensor<2x160x3x32xf32>, tensor<2x160x3x32xf32>) -> ()
  "check.expect_almost_eq"(%a6, %b6) {tolerance = 1.0e-5 : f64} : (tensor<2x224x3x32xf32>, tensor<2x224x3x32xf32>) -> ()
  "check.expect_almost_eq"(%a7, %b7) {tolerance = 1.0e-5 : f64} : (tensor<2x224x3x32xf32>, tensor<2x224x3x32xf32>) -> ()
  %x8 = stablehlo.convert %a8 : (tensor<2x256x1x64xbf16>) -> tensor<2x256x1x64xf32>
  %y8 = stablehlo.convert %b8 : (tensor<2x256x1x64xbf16>) -> tensor<2x256x1x64xf32>
  "check.expect_almost_eq"(%x8, %y8) {tolerance = 9.0e-3 : f64} : (tensor<2x256x1x64xf32>, tensor<2x256x1x64xf32>) -> ()
  %x9 = stablehlo.convert %a9 : (tensor<2x256x1x64xbf16>) -> tensor<2x256x1x64xf32>
  %y9 = stablehlo.convert %b9 : (tensor<2x256x1x64xbf16>) -> tensor<2x256x1x64xf32>
  "check.expect_almost_eq"(%x9, %y9) {tolerance = 9.0e-3 : f64} : (tensor<2x256x1x64xf32>, tensor<2x256x1x64xf32>) -> ()
  %x10 = stablehlo.convert %a10 : (tensor<2x256x1x64xbf16>) -> tensor<2x256x1x64xf32>
  %y10 = stablehlo.convert %b10 : (tensor<2x256x1x64xbf16>) -> tensor<2x256x1x64xf32>
  "check.expect_almost_eq"(%x10, %y10) {tolerance = 9.0e-3 : f64} : (tensor<2x256x1x64xf32>, tensor<2x256x1x64xf32>) -> ()
  %x11 = stablehlo.convert %a11 : (tensor<2x256x1x64xbf16>) -> tensor<2x256x1x64xf32>
  %y11 = stablehlo.convert %b11 : (tensor<2x256x1x64xbf16>) -> tensor<2x256x1x64xf32>
  "check.expect_almost_eq"(%x11, %y11) {tolerance = 9.0e-3 : f64} : (tensor<2x256x1x64xf32>, tensor<2x256x1x64xf32>) -> ()
  return
}
