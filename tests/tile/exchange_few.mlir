// Rows whose halves change places are not cut into short ones to fill the partitions, however few they are.
// run: otrn eval %s
// run: otrn run %s --cache=off --check
// run: otrn run %s --cache=off --check --lnc=2
// run: otrn run %s --cache=off --target=trn1 --host=portable
// run: otrn compile %s --cache=off --target=trn2 --lnc=1 --dump=rows
// expect: otrn.exchange
func.func @main() {
  %i = stablehlo.iota dim = 0 : tensor<512xf32>
  %i1 = stablehlo.optimization_barrier %i : tensor<512xf32>
  %x = stablehlo.reshape %i1 : (tensor<512xf32>) -> tensor<2x256xf32>
  %a = stablehlo.slice %x [0:2, 0:128] : (tensor<2x256xf32>) -> tensor<2x128xf32>
  %b = stablehlo.slice %x [0:2, 128:256] : (tensor<2x256xf32>) -> tensor<2x128xf32>
  %turned = stablehlo.concatenate %b, %a, dim = 1 : (tensor<2x128xf32>, tensor<2x128xf32>) -> tensor<2x256xf32>
  %twice = stablehlo.add %turned, %turned : tensor<2x256xf32>
  %less = stablehlo.subtract %twice, %x : tensor<2x256xf32>
  %low = stablehlo.iota dim = 0 : tensor<2x128xf32>
  %col = stablehlo.iota dim = 1 : tensor<2x128xf32>
  %width = stablehlo.constant dense<256.0> : tensor<2x128xf32>
  %row = stablehlo.multiply %low, %width : tensor<2x128xf32>
  %at = stablehlo.add %row, %col : tensor<2x128xf32>
  %more = stablehlo.add %at, %width : tensor<2x128xf32>
  %left = stablehlo.slice %less [0:2, 0:128] : (tensor<2x256xf32>) -> tensor<2x128xf32>
  check.expect_eq %left, %more : tensor<2x128xf32>
  func.return
}
