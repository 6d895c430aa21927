// Elementwise work on broadcasts, iotas and numbers alone is done in the dimensions they tell apart; then it is broadcast. What has
// an operand of the whole shape stays as it is, and so does what tells all dimensions apart.
// run: otrn compile %s --dump=narrow --cache=off -o %t/a.otrn > %t/narrow && grep -c 'compare.*tensor<8x40xi1>' %t/narrow
// expect: 2
// run: grep 'stablehlo.and' %t/narrow
// expect: tensor<8x40xi1>
// run: grep 'stablehlo.multiply' %t/narrow
// expect: tensor<8xf32>
// run: grep 'stablehlo.add' %t/narrow
// expect: tensor<8x40x16xi32>
// run: grep 'stablehlo.sqrt' %t/narrow
// expect: tensor<f32>
// run: otrn run %s --cache=off --output=%t/a && otrn eval %s --output=%t/b && for i in 0 1 2; do cmp %t/a/result_$i.npy %t/b/result_$i.npy || exit 1; done
// run: otrn run %s --cache=off --disable-pass=narrow --output=%t/c && for i in 0 1 2; do cmp %t/a/result_$i.npy %t/c/result_$i.npy || exit 1; done
func.func public @main() -> (tensor<8x40x16xf32>, tensor<8x40x16xi32>, tensor<8x1x16xf32>) {
  %ends = stablehlo.constant dense<[3, 9, 9, 17, 20, 31, 38, 40]> : tensor<8xi32>
  %begins = stablehlo.constant dense<[[0], [3], [9], [9], [17], [20], [31], [38]]> : tensor<8x1xi32>
  %i = stablehlo.iota dim = 1 : tensor<8x40x16xi32>
  %j = stablehlo.iota dim = 2 : tensor<8x40x16xi32>
  %e = stablehlo.broadcast_in_dim %ends, dims = [0] : (tensor<8xi32>) -> tensor<8x40x16xi32>
  %b = stablehlo.broadcast_in_dim %begins, dims = [0, 1] : (tensor<8x1xi32>) -> tensor<8x40x16xi32>
  %le = stablehlo.compare LE, %b, %i : (tensor<8x40x16xi32>, tensor<8x40x16xi32>) -> tensor<8x40x16xi1>
  %lt = stablehlo.compare LT, %i, %e : (tensor<8x40x16xi32>, tensor<8x40x16xi32>) -> tensor<8x40x16xi1>
  %in = stablehlo.and %le, %lt : tensor<8x40x16xi1>
  %f = stablehlo.convert %e : (tensor<8x40x16xi32>) -> tensor<8x40x16xf32>
  %half = stablehlo.constant dense<0.5> : tensor<8x40x16xf32>
  %h = stablehlo.multiply %f, %half : tensor<8x40x16xf32>
  %x = stablehlo.convert %j : (tensor<8x40x16xi32>) -> tensor<8x40x16xf32>
  %r0 = stablehlo.select %in, %x, %h : tensor<8x40x16xi1>, tensor<8x40x16xf32>
  %k = stablehlo.subtract %i, %j : tensor<8x40x16xi32>
  %r1 = stablehlo.add %k, %e : tensor<8x40x16xi32>
  %s = stablehlo.constant dense<0.25> : tensor<f32>
  %o = stablehlo.optimization_barrier %s : tensor<f32>
  %w = stablehlo.broadcast_in_dim %o, dims = [] : (tensor<f32>) -> tensor<8x1x16xf32>
  %r2 = stablehlo.sqrt %w : tensor<8x1x16xf32>
  return %r0, %r1, %r2 : tensor<8x40x16xf32>, tensor<8x40x16xi32>, tensor<8x1x16xf32>
}
