// Less than one tile on every side.
// run: otrn eval %s
// run: otrn run %s --threads=1
// run: otrn run %s --target=trn1 --check
// run: otrn run %s --host=portable --threads=2
func.func public @main() {
  // small whole numbers: sums are exact in any order
  %li = stablehlo.iota dim = 0 : tensor<15xi32>
  %l7 = stablehlo.constant dense<7> : tensor<15xi32>
  %l3 = stablehlo.constant dense<3> : tensor<15xi32>
  %lm = stablehlo.remainder %li, %l7 : tensor<15xi32>
  %ls = stablehlo.subtract %lm, %l3 : tensor<15xi32>
  %lc = stablehlo.convert %ls : (tensor<15xi32>) -> tensor<15xf32>
  %l = stablehlo.reshape %lc : (tensor<15xf32>) -> tensor<3x5xf32>
  %ri = stablehlo.iota dim = 0 : tensor<35xi32>
  %r5 = stablehlo.constant dense<5> : tensor<35xi32>
  %r2 = stablehlo.constant dense<2> : tensor<35xi32>
  %rm = stablehlo.remainder %ri, %r5 : tensor<35xi32>
  %rs = stablehlo.subtract %rm, %r2 : tensor<35xi32>
  %rc = stablehlo.convert %rs : (tensor<35xi32>) -> tensor<35xf32>
  %r = stablehlo.reshape %rc : (tensor<35xf32>) -> tensor<5x7xf32>
  %got = stablehlo.dot_general %l, %r, contracting_dims = [1] x [0] : (tensor<3x5xf32>, tensor<5x7xf32>) -> tensor<3x7xf32>
  %lf = stablehlo.convert %l : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %rf = stablehlo.convert %r : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %lw = stablehlo.broadcast_in_dim %lf, dims = [0, 2] : (tensor<3x5xf32>) -> tensor<3x7x5xf32>
  %rw = stablehlo.broadcast_in_dim %rf, dims = [2, 1] : (tensor<5x7xf32>) -> tensor<3x7x5xf32>
  %p = stablehlo.multiply %lw, %rw : tensor<3x7x5xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<3x7x5xf32>, tensor<f32>) -> tensor<3x7xf32>
  %want = stablehlo.convert %sum : (tensor<3x7xf32>) -> tensor<3x7xf32>
  stablehlo.custom_call @check.expect_eq(%got, %want) {has_side_effect = true} : (tensor<3x7xf32>, tensor<3x7xf32>) -> ()
  return
}
