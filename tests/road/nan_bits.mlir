// A NaN that GpSimd computes is the one NaN of its type, whichever operand's would survive on this host; what only moves keeps
// its bits.
// run: otrn run %s --disable-pass=fold --host=portable
// run: otrn run %s --disable-pass=fold
// run: otrn run %s --disable-pass=fold,fuse --threads=1
// run: otrn run %s
// run: otrn eval %s
func.func @main() {
  %u = stablehlo.constant dense<[[0xffc00000, 0x7fc00001, 1.0], [0xff800001, 2.0, 0x7fffffff]]> : tensor<2x3xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%u init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %m = stablehlo.reduce(%u init: %z) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %a = stablehlo.add %u, %u : tensor<2x3xf32>
  %k = stablehlo.constant dense<1.0> : tensor<1x1x1xf32>
  %i = stablehlo.reshape %u : (tensor<2x3xf32>) -> tensor<1x6x1xf32>
  %c = stablehlo.convolution(%i, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x1xf32>, tensor<1x1x1xf32>) -> tensor<1x6x1xf32>
  %sb = stablehlo.bitcast_convert %s : (tensor<2xf32>) -> tensor<2xui32>
  %mb = stablehlo.bitcast_convert %m : (tensor<2xf32>) -> tensor<2xui32>
  %ab = stablehlo.bitcast_convert %a : (tensor<2x3xf32>) -> tensor<2x3xui32>
  %cb = stablehlo.bitcast_convert %c : (tensor<1x6x1xf32>) -> tensor<1x6x1xui32>
  check.expect_eq_const %sb, dense<[2143289344, 2143289344]> : tensor<2xui32>
  check.expect_eq_const %mb, dense<[2143289344, 2143289344]> : tensor<2xui32>
  check.expect_eq_const %ab, dense<[[2143289344, 2143289344, 1073741824], [2143289344, 1082130432, 2143289344]]> : tensor<2x3xui32>
  check.expect_eq_const %cb, dense<[[[2143289344], [2143289344], [1065353216], [2143289344], [1073741824], [2143289344]]]> : tensor<1x6x1xui32>
  %r = stablehlo.reverse %u, dims = [0] : tensor<2x3xf32>
  %rb = stablehlo.bitcast_convert %r : (tensor<2x3xf32>) -> tensor<2x3xui32>
  check.expect_eq_const %rb, dense<[[4286578689, 1073741824, 2147483647], [4290772992, 2143289345, 1065353216]]> : tensor<2x3xui32>
  return
}
