// Attention scores: batch dimensions in the middle of the operands.
// run: otrn eval %s
// run: otrn run %s --threads=1
// run: otrn run %s --target=trn1 --check
// run: otrn run %s --host=portable --threads=2
func.func public @main() {
  // small whole numbers: sums are exact in any order
  %li = stablehlo.iota dim = 0 : tensor<432xi32>
  %l7 = stablehlo.constant dense<7> : tensor<432xi32>
  %l3 = stablehlo.constant dense<3> : tensor<432xi32>
  %lm = stablehlo.remainder %li, %l7 : tensor<432xi32>
  %ls = stablehlo.subtract %lm, %l3 : tensor<432xi32>
  %lc = stablehlo.convert %ls : (tensor<432xi32>) -> tensor<432xf32>
  %l = stablehlo.reshape %lc : (tensor<432xf32>) -> tensor<2x9x3x8xf32>
  %ri = stablehlo.iota dim = 0 : tensor<528xi32>
  %r5 = stablehlo.constant dense<5> : tensor<528xi32>
  %r2 = stablehlo.constant dense<2> : tensor<528xi32>
  %rm = stablehlo.remainder %ri, %r5 : tensor<528xi32>
  %rs = stablehlo.subtract %rm, %r2 : tensor<528xi32>
  %rc = stablehlo.convert %rs : (tensor<528xi32>) -> tensor<528xf32>
  %r = stablehlo.reshape %rc : (tensor<528xf32>) -> tensor<2x11x3x8xf32>
  %got = stablehlo.dot_general %l, %r, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<2x9x3x8xf32>, tensor<2x11x3x8xf32>) -> tensor<2x3x9x11xf32>
  %lf = stablehlo.convert %l : (tensor<2x9x3x8xf32>) -> tensor<2x9x3x8xf32>
  %rf = stablehlo.convert %r : (tensor<2x11x3x8xf32>) -> tensor<2x11x3x8xf32>
  %lw = stablehlo.broadcast_in_dim %lf, dims = [0, 2, 1, 4] : (tensor<2x9x3x8xf32>) -> tensor<2x3x9x11x8xf32>
  %rw = stablehlo.broadcast_in_dim %rf, dims = [0, 3, 1, 4] : (tensor<2x11x3x8xf32>) -> tensor<2x3x9x11x8xf32>
  %p = stablehlo.multiply %lw, %rw : tensor<2x3x9x11x8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [4] : (tensor<2x3x9x11x8xf32>, tensor<f32>) -> tensor<2x3x9x11xf32>
  %want = stablehlo.convert %sum : (tensor<2x3x9x11xf32>) -> tensor<2x3x9x11xf32>
  stablehlo.custom_call @check.expect_eq(%got, %want) {has_side_effect = true} : (tensor<2x3x9x11xf32>, tensor<2x3x9x11xf32>) -> ()
  return
}
