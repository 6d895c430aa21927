// Bytes count in the choice of a cut also where the array hides them: every operand of this product comes once (29.4 MB with the result).
// run: otrn prof %s --target=trn2 --lnc=1 --cache=off
// expect: HBM traffic    29.36 MB
func.func public @main(%x: tensor<2048x1024xbf16>, %w: tensor<1024x4096xbf16>) -> tensor<2048x4096xbf16> {
  %r = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2048x1024xbf16>, tensor<1024x4096xbf16>) -> tensor<2048x4096xbf16>
  return %r : tensor<2048x4096xbf16>
}
