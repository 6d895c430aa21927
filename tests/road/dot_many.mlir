// Many small products whose contracted dimension is dense: where transfers cannot transpose, rows come as they lie
// and the array transposes them.
// run: otrn eval %s
// run: otrn run %s --threads=1
// run: otrn run %s --target=trn1 --check
// run: otrn dis %s --target=trn1 > %t/one.s
// run: grep -c "tensor: transpose" %t/one.s
// expect: 31
func.func public @main() {
  // small whole numbers: sums are exact in any order
  %li = stablehlo.iota dim = 0 : tensor<11700xi32>
  %l7 = stablehlo.constant dense<7> : tensor<11700xi32>
  %l3 = stablehlo.constant dense<3> : tensor<11700xi32>
  %lm = stablehlo.remainder %li, %l7 : tensor<11700xi32>
  %ls = stablehlo.subtract %lm, %l3 : tensor<11700xi32>
  %lc = stablehlo.convert %ls : (tensor<11700xi32>) -> tensor<11700xbf16>
  %l = stablehlo.reshape %lc : (tensor<11700xbf16>) -> tensor<5x9x13x20xbf16>
  %ri = stablehlo.iota dim = 0 : tensor<42900xi32>
  %r5 = stablehlo.constant dense<5> : tensor<42900xi32>
  %r2 = stablehlo.constant dense<2> : tensor<42900xi32>
  %rm = stablehlo.remainder %ri, %r5 : tensor<42900xi32>
  %rs = stablehlo.subtract %rm, %r2 : tensor<42900xi32>
  %rc = stablehlo.convert %rs : (tensor<42900xi32>) -> tensor<42900xbf16>
  %r = stablehlo.reshape %rc : (tensor<42900xbf16>) -> tensor<5x33x13x20xbf16>
  %got = stablehlo.dot_general %l, %r, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<5x9x13x20xbf16>, tensor<5x33x13x20xbf16>) -> tensor<5x13x9x33xf32>
  %lf = stablehlo.convert %l : (tensor<5x9x13x20xbf16>) -> tensor<5x9x13x20xf32>
  %rf = stablehlo.convert %r : (tensor<5x33x13x20xbf16>) -> tensor<5x33x13x20xf32>
  %lw = stablehlo.broadcast_in_dim %lf, dims = [0, 2, 1, 4] : (tensor<5x9x13x20xf32>) -> tensor<5x13x9x33x20xf32>
  %rw = stablehlo.broadcast_in_dim %rf, dims = [0, 3, 1, 4] : (tensor<5x33x13x20xf32>) -> tensor<5x13x9x33x20xf32>
  %p = stablehlo.multiply %lw, %rw : tensor<5x13x9x33x20xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %want = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [4] : (tensor<5x13x9x33x20xf32>, tensor<f32>) -> tensor<5x13x9x33xf32>
  stablehlo.custom_call @check.expect_eq(%got, %want) {has_side_effect = true} : (tensor<5x13x9x33xf32>, tensor<5x13x9x33xf32>) -> ()
  return
}
