// Four pairs of tensors: fp32 within 1e-4, bf16 within an ulp. Used by inner.mlir.
func.func public @main(%a0: tensor<16x8xf32>, %a1: tensor<f32>, %a2: tensor<64x1xbf16>, %a3: tensor<f32>, %b0: tensor<16x8xf32>, %b1: tensor<f32>, %b2: tensor<64x1xbf16>, %b3: tensor<f32>) {
  "check.expect_almost_eq"(%a0, %b0) {tolerance = 1.0e-4 : f64} : (tensor<16x8xf32>, tensor<16x8xf32>) -> ()
  "check.expect_almost_eq"(%a1, %b1) {tolerance = 1.0e-3 : f64} : (tensor<f32>, tensor<f32>) -> ()
  %x = stablehlo.convert %a2 : (tensor<64x1xbf16>) -> tensor<64x1xf32>
  %y = stablehlo.convert %b2 : (tensor<64x1xbf16>) -> tensor<64x1xf32>
  "check.expect_almost_eq"(%x, %y) {tolerance = 0.07 : f64} : (tensor<64x1xf32>, tensor<64x1xf32>) -> ()
  "check.expect_almost_eq"(%a3, %b3) {tolerance = 1.0e-3 : f64} : (tensor<f32>, tensor<f32>) -> ()
  return
}
