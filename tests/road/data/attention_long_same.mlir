func.func public @main(%a0: tensor<1x1024x1x32xf32>, %a1: tensor<1x1100x2x128xf32>, %a2: tensor<1x1100x2x128xf32>, %a3: tensor<1x1100x2x128xf32>, %b0: tensor<1x1024x1x32xf32>, %b1: tensor<1x1100x2x128xf32>, %b2: tensor<1x1100x2x128xf32>, %b3: tensor<1x1100x2x128xf32>) {
  check.expect_almost_eq %a0, %b0 : tensor<1x1024x1x32xf32>
  check.expect_almost_eq %a1, %b1 : tensor<1x1100x2x128xf32>
  check.expect_almost_eq %a2, %b2 : tensor<1x1100x2x128xf32>
  check.expect_almost_eq %a3, %b3 : tensor<1x1100x2x128xf32>
  return
}
