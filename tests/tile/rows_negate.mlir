// A function of -x is one instruction, with a scale of -1, in any float type: a minus is exact. The result is the evaluator's rounded alike.
// run: otrn compile %s --dump=tile --cache=off -o %t/a.otrn
// expect: fn=exp a=-1.0
// expect-not: op0=multiply a=-1.0
// expect-not: fn=identity a=-1.0
// run: otrn run %t/a.otrn --output=%t/a && otrn run %s --disable-pass=rows --cache=off --output=%t/b && cmp %t/a/result_0.npy %t/b/result_0.npy
func.func public @main() -> tensor<256x512xbf16> {
  %i = stablehlo.iota dim = 1 : tensor<256x512xf32>
  %s = stablehlo.constant dense<0.013> : tensor<256x512xf32>
  %x32 = stablehlo.multiply %i, %s : tensor<256x512xf32>
  %x = stablehlo.convert %x32 : (tensor<256x512xf32>) -> tensor<256x512xbf16>
  %n = stablehlo.negate %x : tensor<256x512xbf16>
  %r = stablehlo.exponential %n : tensor<256x512xbf16>
  return %r : tensor<256x512xbf16>
}
