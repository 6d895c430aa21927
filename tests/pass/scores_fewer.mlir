// Rows of which a later program reads three follow from one: that one is stored in their place, and the three are made again (a gelu's
// argument instead of its half, its distribution and its density). Only what the product behind it reads is stored beside it.
// run: otrn compile %s --dump=join --cache=off -o %t/a.otrn
// expect: :4 = "otrn.rows"
// run: otrn compile %s --dump=scores --cache=off -o %t/a.otrn
// expect: :2 = "otrn.rows"
// expect: chlo.erf
// expect: chlo.erf
// expect: stablehlo.exponential
// run: otrn compile %s --cache=off --disable-pass=scores -o %t/b.otrn
// run: otrn run %t/a.otrn --output=%t/a && otrn run %t/b.otrn --output=%t/b && cmp %t/a/result_0.npy %t/b/result_0.npy && cmp %t/a/result_1.npy %t/b/result_1.npy
func.func public @main() -> (tensor<1024x128xbf16>, tensor<1024x512xbf16>) {
  %i = stablehlo.iota dim = 0 : tensor<1024x512xf32>
  %j = stablehlo.iota dim = 1 : tensor<1024x512xf32>
  %s = stablehlo.constant dense<0.013> : tensor<1024x512xf32>
  %is = stablehlo.multiply %i, %s : tensor<1024x512xf32>
  %ij = stablehlo.subtract %is, %j : tensor<1024x512xf32>
  %sine = stablehlo.sine %ij : tensor<1024x512xf32>
  %a = stablehlo.convert %sine : (tensor<1024x512xf32>) -> tensor<1024x512xbf16>
  %w = stablehlo.slice %a [0:512, 0:128] : (tensor<1024x512xbf16>) -> tensor<512x128xbf16>
  %v = stablehlo.slice %a [0:512, 0:512] : (tensor<1024x512xbf16>) -> tensor<512x512xbf16>
  %b0 = stablehlo.slice %a [3:4, 0:512] : (tensor<1024x512xbf16>) -> tensor<1x512xbf16>
  %b1 = stablehlo.reshape %b0 : (tensor<1x512xbf16>) -> tensor<512xbf16>
  %b = stablehlo.broadcast_in_dim %b1, dims = [1] : (tensor<512xbf16>) -> tensor<1024x512xbf16>
  %half = stablehlo.constant dense<0.5> : tensor<1024x512xbf16>
  %root = stablehlo.constant dense<0.707> : tensor<1024x512xbf16>
  %one = stablehlo.constant dense<1.0> : tensor<1024x512xf32>
  %p = stablehlo.dot_general %a, %v, contracting_dims = [1] x [0] : (tensor<1024x512xbf16>, tensor<512x512xbf16>) -> tensor<1024x512xbf16>
  %x = stablehlo.add %p, %b : tensor<1024x512xbf16>
  %h = stablehlo.multiply %x, %half : tensor<1024x512xbf16>
  %t = stablehlo.multiply %x, %root : tensor<1024x512xbf16>
  %t32 = stablehlo.convert %t : (tensor<1024x512xbf16>) -> tensor<1024x512xf32>
  %e = chlo.erf %t32 : tensor<1024x512xf32> -> tensor<1024x512xf32>
  %c32 = stablehlo.add %one, %e : tensor<1024x512xf32>
  %c = stablehlo.convert %c32 : (tensor<1024x512xf32>) -> tensor<1024x512xbf16>
  %tt = stablehlo.multiply %t, %t : tensor<1024x512xbf16>
  %nt = stablehlo.negate %tt : tensor<1024x512xbf16>
  %d = stablehlo.exponential %nt : tensor<1024x512xbf16>
  %y = stablehlo.multiply %h, %c : tensor<1024x512xbf16>
  %r0 = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<1024x512xbf16>, tensor<512x128xbf16>) -> tensor<1024x128xbf16>
  %g = stablehlo.dot_general %r0, %w, contracting_dims = [1] x [1] : (tensor<1024x128xbf16>, tensor<512x128xbf16>) -> tensor<1024x512xbf16>
  %gc = stablehlo.multiply %g, %c : tensor<1024x512xbf16>
  %gh = stablehlo.multiply %g, %h : tensor<1024x512xbf16>
  %gd = stablehlo.multiply %gh, %d : tensor<1024x512xbf16>
  %r1 = stablehlo.add %gc, %gd : tensor<1024x512xbf16>
  return %r0, %r1 : tensor<1024x128xbf16>, tensor<1024x512xbf16>
}
