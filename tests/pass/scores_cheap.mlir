// What a few instructions make of rows that are stored anyway is computed again where a gradient reads it, also when the
// gradient's own program tells no rows or columns: of the first program's three results for it, 1 - tanh is not stored.
// run: otrn compile %s --dump=rows --cache=off -o %t/a.otrn
// expect: :3 = "otrn.rows"
// run: otrn compile %s --dump=scores --cache=off -o %t/a.otrn
// expect: :2 = "otrn.rows"
// run: otrn compile %s --cache=off --disable-pass=scores -o %t/b.otrn
// run: otrn run %t/a.otrn --output=%t/a && otrn run %t/b.otrn --output=%t/b && cmp %t/a/result_0.npy %t/b/result_0.npy && cmp %t/a/result_1.npy %t/b/result_1.npy
func.func public @main() -> (tensor<256x128xf32>, tensor<256x256xf32>) {
  %i = stablehlo.iota dim = 0 : tensor<256x256xf32>
  %j = stablehlo.iota dim = 1 : tensor<256x256xf32>
  %s = stablehlo.constant dense<0.013> : tensor<256x256xf32>
  %is = stablehlo.multiply %i, %s : tensor<256x256xf32>
  %ij = stablehlo.subtract %is, %j : tensor<256x256xf32>
  %a = stablehlo.sine %ij : tensor<256x256xf32>
  %w = stablehlo.slice %a [0:256, 0:128] : (tensor<256x256xf32>) -> tensor<256x128xf32>
  %b0 = stablehlo.slice %a [3:4, 0:256] : (tensor<256x256xf32>) -> tensor<1x256xf32>
  %b1 = stablehlo.reshape %b0 : (tensor<1x256xf32>) -> tensor<256xf32>
  %b = stablehlo.broadcast_in_dim %b1, dims = [1] : (tensor<256xf32>) -> tensor<256x256xf32>
  %one = stablehlo.constant dense<1.0> : tensor<256x256xf32>
  %p = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %x = stablehlo.add %p, %b : tensor<256x256xf32>
  %t = stablehlo.tanh %x : tensor<256x256xf32>
  %u = stablehlo.subtract %one, %t : tensor<256x256xf32>
  %y = stablehlo.multiply %x, %t : tensor<256x256xf32>
  %r0 = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x128xf32>) -> tensor<256x128xf32>
  %g = stablehlo.dot_general %r0, %w, contracting_dims = [1] x [1] : (tensor<256x128xf32>, tensor<256x128xf32>) -> tensor<256x256xf32>
  %g1 = stablehlo.multiply %g, %u : tensor<256x256xf32>
  %r1 = stablehlo.multiply %g1, %t : tensor<256x256xf32>
  return %r0, %r1 : tensor<256x128xf32>, tensor<256x256xf32>
}
