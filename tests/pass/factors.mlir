// A sum over rows of what numbers of the columns scale is the sum, scaled; those that differ by such numbers alone are one. Channels last and channels
// first; a negated one; factors deeper in the product. Left alone: squares of something scaled, which may be scaled lest they overflow, sums along
// rows, and what a product reads, which takes a sum of it along.
// run: otrn compile %s --cache=off --dump=cse | grep -c stablehlo.reduce
// expect: 5
// run: otrn compile %s --cache=off --disable-pass=factors --dump=cse | grep -c stablehlo.reduce
// expect: 8
// run: otrn run %s --check
// run: otrn run %s --disable-pass=factors
// run: otrn eval %s
func.func @main() {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %i0 = stablehlo.iota dim = 0 : tensor<131072xi32>
  %five = stablehlo.constant dense<5> : tensor<131072xi32>
  %i1 = stablehlo.remainder %i0, %five : tensor<131072xi32>
  %i2 = stablehlo.convert %i1 : (tensor<131072xi32>) -> tensor<131072xf32>
  %x = stablehlo.reshape %i2 : (tensor<131072xf32>) -> tensor<1024x128xf32>
  %y0 = stablehlo.reverse %i2, dims = [0] : tensor<131072xf32>
  %y = stablehlo.reshape %y0 : (tensor<131072xf32>) -> tensor<1024x128xf32>
  %c = stablehlo.slice %i2 [7:135] : (tensor<131072xf32>) -> tensor<128xf32>
  %cb = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<128xf32>) -> tensor<1024x128xf32>
  %two = stablehlo.constant dense<2.0> : tensor<1024x128xf32>
  %two1 = stablehlo.constant dense<2.0> : tensor<128xf32>

  // three that are one: x y, (x c) y, - 2 (x (y c))
  %xy = stablehlo.multiply %x, %y : tensor<1024x128xf32>
  %s1 = stablehlo.reduce(%xy init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1024x128xf32>, tensor<f32>) -> tensor<128xf32>
  %xc = stablehlo.multiply %x, %cb : tensor<1024x128xf32>
  %xcy = stablehlo.multiply %xc, %y : tensor<1024x128xf32>
  %s2 = stablehlo.reduce(%xcy init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1024x128xf32>, tensor<f32>) -> tensor<128xf32>
  %yc = stablehlo.multiply %cb, %y : tensor<1024x128xf32>
  %xyc = stablehlo.multiply %x, %yc : tensor<1024x128xf32>
  %minus = stablehlo.negate %xyc : tensor<1024x128xf32>
  %minus2 = stablehlo.multiply %two, %minus : tensor<1024x128xf32>
  %s3 = stablehlo.reduce(%minus2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1024x128xf32>, tensor<f32>) -> tensor<128xf32>
  %e2 = stablehlo.multiply %s1, %c : tensor<128xf32>
  check.expect_eq %s2, %e2 : tensor<128xf32>
  %e3a = stablehlo.multiply %e2, %two1 : tensor<128xf32>
  %e3 = stablehlo.negate %e3a : tensor<128xf32>
  check.expect_eq %s3, %e3 : tensor<128xf32>

  // both sides are scaled; along rows; the operand of a product
  %sq = stablehlo.multiply %xc, %xc : tensor<1024x128xf32>
  %s4 = stablehlo.reduce(%sq init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1024x128xf32>, tensor<f32>) -> tensor<128xf32>
  %s5 = stablehlo.reduce(%xcy init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x128xf32>, tensor<f32>) -> tensor<1024xf32>
  %w = stablehlo.dot_general %y, %xc, contracting_dims = [0] x [0] : (tensor<1024x128xf32>, tensor<1024x128xf32>) -> tensor<128x128xf32>
  %s6 = stablehlo.reduce(%xc init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1024x128xf32>, tensor<f32>) -> tensor<128xf32>

  // channels first: n c h
  %nx = stablehlo.reshape %i2 : (tensor<131072xf32>) -> tensor<16x128x64xf32>
  %nc = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<128xf32>) -> tensor<16x128x64xf32>
  %nxc = stablehlo.multiply %nx, %nc : tensor<16x128x64xf32>
  %s7 = stablehlo.reduce(%nxc init: %zero) applies stablehlo.add across dimensions = [0, 2] : (tensor<16x128x64xf32>, tensor<f32>) -> tensor<128xf32>
  %s8 = stablehlo.reduce(%nx init: %zero) applies stablehlo.add across dimensions = [0, 2] : (tensor<16x128x64xf32>, tensor<f32>) -> tensor<128xf32>
  %e8 = stablehlo.multiply %s8, %c : tensor<128xf32>
  check.expect_eq %s7, %e8 : tensor<128xf32>
  func.return
}
