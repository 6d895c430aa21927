// Two pairs of vectors: what was computed in fp32 is within 1e-5, in bf16 within 9e-3. Used by attention_together.mlir.
func.func public @main(%a0: tensor<753152xf32>, %a1: tensor<131072xf32>, %b0: tensor<753152xf32>, %b1: tensor<131072xf32>) {
  "check.expect_almost_eq"(%a0, %b0) {tolerance = 1.0e-5 : f64} : (tensor<753152xf32>, tensor<753152xf32>) -> ()
  "check.expect_almost_eq"(%a1, %b1) {tolerance = 9.0e-3 : f64} : (tensor<131072xf32>, tensor<131072xf32>) -> ()
  return
}
