// 3x3 convolutions with many channels, channels last and first, read their windows out of slabs in SBUF: an input comes once and
// not once for each tap. The products of a tap are one instruction, and both orders of dimensions give the same numbers.
// run: otrn eval %s
// run: otrn run %s --cache=off --check --threads=1
// run: otrn run %s --cache=off --host=portable --threads=2
// run: otrn run %s --cache=off --target=trn1 --check
// run: otrn run %s --cache=off --lnc=2 --check
// run: otrn compile %s --cache=off -o %t/a.otrn && otrn dis %t/a.otrn | grep -c 'kernel [0-9]* stablehlo.convolution' || true
// expect: 0
// run: otrn dis %t/a.otrn | grep 'tensor: matmul' | grep -c 'n3=14'
// expect: 36
func.func public @main() {
  %seven = stablehlo.constant dense<7> : tensor<50176xi32>
  %three = stablehlo.constant dense<3> : tensor<50176xi32>
  %xi = stablehlo.iota dim = 0 : tensor<50176xi32>
  %xr = stablehlo.remainder %xi, %seven : tensor<50176xi32>
  %xs = stablehlo.subtract %xr, %three : tensor<50176xi32>
  %xf = stablehlo.convert %xs : (tensor<50176xi32>) -> tensor<50176xf32>
  %x = stablehlo.reshape %xf : (tensor<50176xf32>) -> tensor<2x14x14x128xf32>
  %five = stablehlo.constant dense<5> : tensor<147456xi32>
  %two = stablehlo.constant dense<2> : tensor<147456xi32>
  %wi = stablehlo.iota dim = 0 : tensor<147456xi32>
  %wr = stablehlo.remainder %wi, %five : tensor<147456xi32>
  %ws = stablehlo.subtract %wr, %two : tensor<147456xi32>
  %wf = stablehlo.convert %ws : (tensor<147456xi32>) -> tensor<147456xf32>
  %w = stablehlo.reshape %wf : (tensor<147456xf32>) -> tensor<3x3x128x128xf32>
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x14x14x128xf32>, tensor<3x3x128x128xf32>) -> tensor<2x14x14x128xf32>
  %xt = stablehlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<2x14x14x128xf32>) -> tensor<2x128x14x14xf32>
  %wt = stablehlo.transpose %w, dims = [3, 2, 0, 1] : (tensor<3x3x128x128xf32>) -> tensor<128x128x3x3xf32>
  %yt = stablehlo.convolution(%xt, %wt) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x128x14x14xf32>, tensor<128x128x3x3xf32>) -> tensor<2x128x14x14xf32>
  %back = stablehlo.transpose %yt, dims = [0, 2, 3, 1] : (tensor<2x128x14x14xf32>) -> tensor<2x14x14x128xf32>
  check.expect_eq %y, %back : tensor<2x14x14x128xf32>
  %i = stablehlo.slice %y [1:2, 7:8, 7:8, 5:6] : (tensor<2x14x14x128xf32>) -> tensor<1x1x1x1xf32>
  %at = stablehlo.slice %x [1:2, 6:9, 6:9, 0:128] : (tensor<2x14x14x128xf32>) -> tensor<1x3x3x128xf32>
  %of = stablehlo.slice %w [0:3, 0:3, 0:128, 5:6] : (tensor<3x3x128x128xf32>) -> tensor<3x3x128x1xf32>
  %flat = stablehlo.reshape %at : (tensor<1x3x3x128xf32>) -> tensor<1152xf32>
  %kernel = stablehlo.reshape %of : (tensor<3x3x128x1xf32>) -> tensor<1152xf32>
  %sum = stablehlo.dot_general %flat, %kernel, contracting_dims = [0] x [0] : (tensor<1152xf32>, tensor<1152xf32>) -> tensor<f32>
  %one = stablehlo.reshape %sum : (tensor<f32>) -> tensor<1x1x1x1xf32>
  check.expect_eq %i, %one : tensor<1x1x1x1xf32>
  return
}
