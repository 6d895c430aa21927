// A chain of programs: the softmax of a loss takes 16-bit scores and widens them itself, and its gradient computes the exponentials again of those
// scores, so that no row of 32 bits is stored. Each program goes with one other at a time.
// run: otrn compile %s --dump=rows --cache=off -o %t/a.otrn
// expect: -> (tensor<1024x1024xbf16>, tensor<1024x1024xf32>)
// run: otrn compile %s --dump=scores --cache=off --disable-pass=join -o %t/a.otrn
// expect: (tensor<1024x1024xbf16>, tensor<1024xbf16>) -> tensor<1024x1024xbf16>
// expect: (tensor<1024x1024xbf16>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>)
// run: otrn compile %s --cache=off --disable-pass=scores -o %t/b.otrn
// run: otrn run %t/a.otrn --check --output=%t/a && otrn run %t/b.otrn --output=%t/b && for i in 0 1 2; do cmp %t/a/result_$i.npy %t/b/result_$i.npy || exit 1; done
func.func public @main() -> (tensor<1024x64xbf16>, tensor<f32>, tensor<1024x64xbf16>) {
  %i = stablehlo.iota dim = 0 : tensor<131072xf32>
  %t = stablehlo.sine %i : tensor<131072xf32>
  %tb = stablehlo.convert %t : (tensor<131072xf32>) -> tensor<131072xbf16>
  %w0 = stablehlo.reshape %tb : (tensor<131072xbf16>) -> tensor<1024x128xbf16>
  %w = stablehlo.slice %w0 [0:1024, 0:64] : (tensor<1024x128xbf16>) -> tensor<1024x64xbf16>
  %k0 = stablehlo.concatenate %tb, %tb, dim = 0 : (tensor<131072xbf16>, tensor<131072xbf16>) -> tensor<262144xbf16>
  %a = stablehlo.reshape %k0 : (tensor<262144xbf16>) -> tensor<1024x256xbf16>
  %k = stablehlo.reshape %k0 : (tensor<262144xbf16>) -> tensor<256x1024xbf16>
  %b0 = stablehlo.slice %tb [0:1024] : (tensor<131072xbf16>) -> tensor<1024xbf16>
  %b = stablehlo.broadcast_in_dim %b0, dims = [1] : (tensor<1024xbf16>) -> tensor<1024x1024xbf16>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.dot_general %a, %k, contracting_dims = [1] x [0] : (tensor<1024x256xbf16>, tensor<256x1024xbf16>) -> tensor<1024x1024xbf16>
  %x = stablehlo.add %p, %b : tensor<1024x1024xbf16>
  %xf = stablehlo.convert %x : (tensor<1024x1024xbf16>) -> tensor<1024x1024xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<1024x1024xbf16>, tensor<1024x64xbf16>) -> tensor<1024x64xbf16>
  %m = stablehlo.reduce(%xf init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %d = stablehlo.subtract %xf, %mb : tensor<1024x1024xf32>
  %e = stablehlo.exponential %d : tensor<1024x1024xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  %l = stablehlo.log %s : tensor<1024xf32>
  %loss = stablehlo.dot_general %l, %l, contracting_dims = [0] x [0] : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<f32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %g = stablehlo.divide %e, %sb : tensor<1024x1024xf32>
  %gn = stablehlo.convert %g : (tensor<1024x1024xf32>) -> tensor<1024x1024xbf16>
  %z = stablehlo.dot_general %gn, %w, contracting_dims = [1] x [0] : (tensor<1024x1024xbf16>, tensor<1024x64xbf16>) -> tensor<1024x64xbf16>
  return %y, %loss, %z : tensor<1024x64xbf16>, tensor<f32>, tensor<1024x64xbf16>
}
