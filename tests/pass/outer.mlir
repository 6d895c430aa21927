// A product that contracts nothing and scales vectors, as einsum writes it, is an elementwise product, to the bit: batch dimensions in any order, the vectors on
// either side, bf16; and an inner product whose operands lie in different orders is one with a transpose. A product for each number took ten thousand times as long.
// run: otrn compile %s --dump=inner --cache=off -o %t/a.otrn > %t/inner && grep -c dot_general %t/inner || true
// expect: 0
// run: otrn run %t/a.otrn --check --output=%t/a && otrn eval %s --output=%t/b && for i in 0 1 2 3; do cmp %t/a/result_$i.npy %t/b/result_$i.npy || exit 1; done
func.func public @main() -> (tensor<2x8x32x64xf32>, tensor<1024x32xf32>, tensor<1024x32xbf16>, tensor<2x32x64xf32>) {
  %i = stablehlo.iota dim = 0 : tensor<32768xf32>
  %seven = stablehlo.constant dense<7.0> : tensor<32768xf32>
  %x = stablehlo.remainder %i, %seven : tensor<32768xf32>
  %l = stablehlo.reshape %x : (tensor<32768xf32>) -> tensor<2x8x64x32xf32>
  %s = stablehlo.slice %x [100:4196] : (tensor<32768xf32>) -> tensor<4096xf32>
  %r = stablehlo.reshape %s : (tensor<4096xf32>) -> tensor<2x32x64xf32>
  %r0 = stablehlo.dot_general %r, %l, batching_dims = [0, 2, 1] x [0, 2, 3], contracting_dims = [] x [] : (tensor<2x32x64xf32>, tensor<2x8x64x32xf32>) -> tensor<2x64x32x8xf32>
  %t0 = stablehlo.transpose %r0, dims = [0, 3, 2, 1] : (tensor<2x64x32x8xf32>) -> tensor<2x8x32x64xf32>
  %a = stablehlo.reshape %x : (tensor<32768xf32>) -> tensor<32x1024xf32>
  %b = stablehlo.slice %x [5:1029] : (tensor<32768xf32>) -> tensor<1024xf32>
  %r1 = stablehlo.dot_general %a, %b, batching_dims = [1] x [0], contracting_dims = [] x [] : (tensor<32x1024xf32>, tensor<1024xf32>) -> tensor<1024x32xf32>
  %ab = stablehlo.convert %a : (tensor<32x1024xf32>) -> tensor<32x1024xbf16>
  %bb = stablehlo.convert %b : (tensor<1024xf32>) -> tensor<1024xbf16>
  %r2 = stablehlo.dot_general %bb, %ab, batching_dims = [0] x [1], contracting_dims = [] x [] : (tensor<1024xbf16>, tensor<32x1024xbf16>) -> tensor<1024x32xbf16>
  %m = stablehlo.reshape %x : (tensor<32768xf32>) -> tensor<2x32x8x64xf32>
  %r3 = stablehlo.dot_general %l, %m, batching_dims = [0, 3, 2] x [0, 1, 3], contracting_dims = [1] x [2] : (tensor<2x8x64x32xf32>, tensor<2x32x8x64xf32>) -> tensor<2x32x64xf32>
  return %t0, %r1, %r2, %r3 : tensor<2x8x32x64xf32>, tensor<1024x32xf32>, tensor<1024x32xbf16>, tensor<2x32x64xf32>
}
