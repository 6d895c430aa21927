// Seven pairs of tensors: each within 1e-4, the check's default. Used by rows.mlir.
func.func public @main(%a0: tensor<2x150x96xf32>, %a1: tensor<3x130x64xf32>, %a2: tensor<40x9001xf32>, %a3: tensor<40xf32>, %a4: tensor<3000x6xf32>, %a5: tensor<8193xf32>, %a6: tensor<40x9001xf32>, %b0: tensor<2x150x96xf32>, %b1: tensor<3x130x64xf32>, %b2: tensor<40x9001xf32>, %b3: tensor<40xf32>, %b4: tensor<3000x6xf32>, %b5: tensor<8193xf32>, %b6: tensor<40x9001xf32>) {
  check.expect_almost_eq %a0, %b0 : tensor<2x150x96xf32>
  check.expect_almost_eq %a1, %b1 : tensor<3x130x64xf32>
  check.expect_almost_eq %a2, %b2 : tensor<40x9001xf32>
  check.expect_almost_eq %a3, %b3 : tensor<40xf32>
  check.expect_almost_eq %a4, %b4 : tensor<3000x6xf32>
  check.expect_almost_eq %a5, %b5 : tensor<8193xf32>
  check.expect_almost_eq %a6, %b6 : tensor<40x9001xf32>
  return
}
