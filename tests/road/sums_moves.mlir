// Sums across rows are products with ones, sums of everything go in two steps, slices, concatenations, transposes and
// broadcasts that keep neighbours together are transfers, a large splat is set once and stored often: no kernel does any
// of that. Each is compared with the same thing by another way.
// run: otrn run %s --cache=off
// run: otrn eval %s
// run: otrn compile %s --cache=off -o %t/a.otrn && otrn dis %t/a.otrn | grep -c 'kernel [0-9]* stablehlo.\(slice\|concatenate\|transpose\|broadcast_in_dim\)' || true
// expect: 2
func.func public @main() -> tensor<300x1000xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %i = stablehlo.iota dim = 0 : tensor<38400xf32>
  %s = stablehlo.sine %i : tensor<38400xf32>
  %x = stablehlo.reshape %s : (tensor<38400xf32>) -> tensor<400x96xf32>
  // down the rows, and along the rows of the transpose
  %down = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<400x96xf32>, tensor<f32>) -> tensor<96xf32>
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<400x96xf32>) -> tensor<96x400xf32>
  %along = stablehlo.reduce(%t init: %z) applies stablehlo.add across dimensions = [1] : (tensor<96x400xf32>, tensor<f32>) -> tensor<96xf32>
  check.expect_almost_eq %down, %along : tensor<96xf32>
  %all = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<400x96xf32>, tensor<f32>) -> tensor<f32>
  %rest = stablehlo.reduce(%along init: %z) applies stablehlo.add across dimensions = [0] : (tensor<96xf32>, tensor<f32>) -> tensor<f32>
  check.expect_almost_eq %all, %rest : tensor<f32>
  // apart and together again; heads to the front and back
  %a = stablehlo.slice %x [0:400, 0:32] : (tensor<400x96xf32>) -> tensor<400x32xf32>
  %b = stablehlo.slice %x [0:400, 32:96] : (tensor<400x96xf32>) -> tensor<400x64xf32>
  %ab = stablehlo.concatenate %a, %b, dim = 1 : (tensor<400x32xf32>, tensor<400x64xf32>) -> tensor<400x96xf32>
  check.expect_eq %ab, %x : tensor<400x96xf32>
  %heads = stablehlo.reshape %x : (tensor<400x96xf32>) -> tensor<400x6x16xf32>
  %front = stablehlo.transpose %heads, dims = [1, 0, 2] : (tensor<400x6x16xf32>) -> tensor<6x400x16xf32>
  %one = stablehlo.slice %front [3:4, 0:400, 0:16] : (tensor<6x400x16xf32>) -> tensor<1x400x16xf32>
  %flat = stablehlo.reshape %one : (tensor<1x400x16xf32>) -> tensor<400x16xf32>
  %same = stablehlo.slice %x [0:400, 48:64] : (tensor<400x96xf32>) -> tensor<400x16xf32>
  check.expect_eq %flat, %same : tensor<400x16xf32>
  // a splat with a remainder
  %big = stablehlo.constant dense<2.5> : tensor<300x1000xf32>
  return %big : tensor<300x1000xf32>
}
