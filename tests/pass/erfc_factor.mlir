// erfc that is a factor of products alone is 1 - erf also where a reshape stands between, as in a loop that computes a GELU again.
// run: otrn run %s
// run: otrn compile %s --dump=simplify
// expect: "chlo.erf"
// expect-not: "chlo.erfc"
func.func public @main() {
  %x = stablehlo.constant dense<0.5> : tensor<64x256xf32>
  %e = chlo.erfc %x : tensor<64x256xf32> -> tensor<64x256xf32>
  %b = stablehlo.broadcast_in_dim %e, dims = [1, 2] : (tensor<64x256xf32>) -> tensor<1x64x256xf32>
  %r = stablehlo.reshape %b : (tensor<1x64x256xf32>) -> tensor<64x256xf32>
  %y = stablehlo.multiply %x, %r : tensor<64x256xf32>
  check.expect_almost_eq_const %y, dense<0.23975006> : tensor<64x256xf32>
  return
}
