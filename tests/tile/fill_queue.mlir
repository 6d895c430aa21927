// The gradient of a convolution's weights: a slot is filled by many transfers, which follow each other in a queue; none waits for the one before to be over.
// run: otrn run %s --check --target=trn2
// run: otrn compile %s --target=trn2 --lnc=1 --cache=off --dump=tile -o %t/a.otrn | awk '/sync: dma dst=sbuf.* src=(scratch|arg)/ { n++; if (/wait\(q[0-3]>=/) w++ } END { print (n > 60 && w * 4 < n) ? "filled in a row" : "waits " w + 0 " of " n }'
// expect: filled in a row
func.func public @main() -> tensor<3x3x64x64xf32> {
  %xi = stablehlo.iota dim = 3 : tensor<16x16x16x64xi32>
  %xr = stablehlo.iota dim = 1 : tensor<16x16x16x64xi32>
  %xs = stablehlo.add %xi, %xr : tensor<16x16x16x64xi32>
  %three = stablehlo.constant dense<3> : tensor<16x16x16x64xi32>
  %xm = stablehlo.remainder %xs, %three : tensor<16x16x16x64xi32>
  %x = stablehlo.convert %xm : (tensor<16x16x16x64xi32>) -> tensor<16x16x16x64xf32>
  %gi = stablehlo.iota dim = 2 : tensor<16x16x16x64xi32>
  %gm = stablehlo.remainder %gi, %three : tensor<16x16x16x64xi32>
  %g = stablehlo.convert %gm : (tensor<16x16x16x64xi32>) -> tensor<16x16x16x64xf32>
  %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<16x16x16x64xf32>, tensor<16x16x16x64xf32>) -> tensor<3x3x64x64xf32>
  return %0 : tensor<3x3x64x64xf32>
}
