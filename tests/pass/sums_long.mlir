// A sum of many rows is added up in several chains: one chain of 512 additions to a growing sum loses places, which the statistics of a
// batch norm over large pictures show.
// run: otrn run %s
// run: otrn run %s --target=trn1
// run: otrn compile %s --dump=sums
// expect: tensor<8x64xf32>
func.func public @main() {
  %x = stablehlo.constant dense<0.1> : tensor<65536x64xf32>
  %row = stablehlo.iota dim = 0 : tensor<65536x64xf32>
  %small = stablehlo.constant dense<1.0e-6> : tensor<65536x64xf32>
  %tilt = stablehlo.multiply %row, %small : tensor<65536x64xf32>
  %y = stablehlo.add %x, %tilt : tensor<65536x64xf32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%y init: %none) applies stablehlo.add across dimensions = [0] : (tensor<65536x64xf32>, tensor<f32>) -> tensor<64xf32>
  %want = stablehlo.constant dense<8701.051> : tensor<64xf32>
  %off = stablehlo.subtract %sum, %want : tensor<64xf32>
  %far = stablehlo.abs %off : tensor<64xf32>
  %most = stablehlo.constant dense<0.002> : tensor<64xf32>
  %near = stablehlo.compare LT, %far, %most : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
  check.expect_eq_const %near, dense<true> : tensor<64xi1>
  return
}
