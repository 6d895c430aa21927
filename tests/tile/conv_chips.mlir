// The order in which a convolution's sums add up does not depend on the chip, whether windows are views of SBUF or come tap by tap.
// run: for c in trn1 trn2 trn3; do otrn run %s --target=$c --lnc=1 --cache=off --output=%t/$c; done
// run: cmp %t/trn1/result_0.npy %t/trn2/result_0.npy && cmp %t/trn1/result_0.npy %t/trn3/result_0.npy
func.func @main() -> tensor<2x32x32x64xf32> {
  %i = stablehlo.iota dim = 0 : tensor<32768xf32>
  %c = stablehlo.constant dense<0.137> : tensor<32768xf32>
  %p = stablehlo.multiply %i, %c : tensor<32768xf32>
  %s = stablehlo.sine %p : tensor<32768xf32>
  %x = stablehlo.reshape %s : (tensor<32768xf32>) -> tensor<2x32x32x16xf32>
  %w0 = stablehlo.slice %s [0:9216] : (tensor<32768xf32>) -> tensor<9216xf32>
  %w = stablehlo.reshape %w0 : (tensor<9216xf32>) -> tensor<3x3x16x64xf32>
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x32x32x16xf32>, tensor<3x3x16x64xf32>) -> tensor<2x32x32x64xf32>
  return %y : tensor<2x32x32x64xf32>
}
