// A convolution and its two gradients, as JAX writes them (stride 2; by the input a dilated output and a reversed kernel,
// by the kernel batch and features changed over), go to the tensor engine: no kernel is left of them. A sum over all
// of <conv(x), y> is the same number three ways.
// run: otrn eval %s
// run: otrn run %s --cache=off --check --threads=1
// run: otrn run %s --cache=off --host=portable --threads=2
// run: otrn run %s --cache=off --target=trn1 --check
// run: otrn compile %s --cache=off -o %t/a.otrn && otrn dis %t/a.otrn | grep -c 'kernel [0-9]* stablehlo.\(convolution\|reverse\)' || true
// expect: 0
// run: otrn compile %s --cache=off --disable-pass=convs -o %t/b.otrn && otrn dis %t/b.otrn | grep -c 'kernel [0-9]* stablehlo.convolution'
// expect: 3
func.func public @main() {
  %seven = stablehlo.constant dense<7> : tensor<6272xi32>
  %three = stablehlo.constant dense<3> : tensor<6272xi32>
  %xi = stablehlo.iota dim = 0 : tensor<6272xi32>
  %xr = stablehlo.remainder %xi, %seven : tensor<6272xi32>
  %xs = stablehlo.subtract %xr, %three : tensor<6272xi32>
  %xf = stablehlo.convert %xs : (tensor<6272xi32>) -> tensor<6272xf32>
  %x = stablehlo.reshape %xf : (tensor<6272xf32>) -> tensor<2x14x14x16xf32>
  %five = stablehlo.constant dense<5> : tensor<3456xi32>
  %two = stablehlo.constant dense<2> : tensor<3456xi32>
  %wi = stablehlo.iota dim = 0 : tensor<3456xi32>
  %wr = stablehlo.remainder %wi, %five : tensor<3456xi32>
  %ws = stablehlo.subtract %wr, %two : tensor<3456xi32>
  %wf = stablehlo.convert %ws : (tensor<3456xi32>) -> tensor<3456xf32>
  %w = stablehlo.reshape %wf : (tensor<3456xf32>) -> tensor<3x3x16x24xf32>
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x14x14x16xf32>, tensor<3x3x16x24xf32>) -> tensor<2x7x7x24xf32>
  %g = stablehlo.slice %y [0:2, 0:7, 0:7, 0:24] : (tensor<2x7x7x24xf32>) -> tensor<2x7x7x24xf32>
  %back = stablehlo.reverse %w, dims = [0, 1] : tensor<3x3x16x24xf32>
  %dx = stablehlo.convolution(%g, %back) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {pad = [[1, 2], [1, 2]], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x7x7x24xf32>, tensor<3x3x16x24xf32>) -> tensor<2x14x14x16xf32>
  %dw = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[1, 0], [1, 0]], rhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x14x14x16xf32>, tensor<2x7x7x24xf32>) -> tensor<3x3x16x24xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %gg = stablehlo.multiply %y, %g : tensor<2x7x7x24xf32>
  %xdx = stablehlo.multiply %x, %dx : tensor<2x14x14x16xf32>
  %wdw = stablehlo.multiply %w, %dw : tensor<3x3x16x24xf32>
  %a = stablehlo.reduce(%gg init: %zero) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<2x7x7x24xf32>, tensor<f32>) -> tensor<f32>
  %b = stablehlo.reduce(%xdx init: %zero) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<2x14x14x16xf32>, tensor<f32>) -> tensor<f32>
  %c = stablehlo.reduce(%wdw init: %zero) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<3x3x16x24xf32>, tensor<f32>) -> tensor<f32>
  check.expect_close %a, %b, max_ulp_difference = 16 : tensor<f32>, tensor<f32>
  check.expect_close %a, %c, max_ulp_difference = 16 : tensor<f32>, tensor<f32>
  return
}
