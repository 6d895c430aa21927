// Inner products of many pairs of vectors, and of two long ones, are elementwise products and sums along rows: batch dimensions in another
// order, a free dimension of size one, bf16. What has rows or columns for the array stays a product, and so does what is small.
// run: otrn compile %s --dump=inner --cache=off -o %t/a.otrn > %t/inner && grep -c dot_general %t/inner
// expect: 2
// run: otrn run %t/a.otrn --check --output=%t/a && otrn eval %s --output=%t/b
// run: otrn eval %S/data/inner_same.mlir --input=%t/a/result_0.npy,%t/a/result_1.npy,%t/a/result_2.npy,%t/a/result_3.npy,%t/b/result_0.npy,%t/b/result_1.npy,%t/b/result_2.npy,%t/b/result_3.npy
func.func public @main() -> (tensor<16x8xf32>, tensor<f32>, tensor<64x1xbf16>, tensor<f32>) {
  %i = stablehlo.iota dim = 0 : tensor<32768xf32>
  %c = stablehlo.constant dense<0.37> : tensor<32768xf32>
  %d = stablehlo.constant dense<0.11> : tensor<32768xf32>
  %e = stablehlo.multiply %i, %c : tensor<32768xf32>
  %f = stablehlo.multiply %i, %d : tensor<32768xf32>
  %x = stablehlo.sine %e : tensor<32768xf32>
  %y = stablehlo.cosine %f : tensor<32768xf32>
  %x3 = stablehlo.reshape %x : (tensor<32768xf32>) -> tensor<8x16x256xf32>
  %y3 = stablehlo.reshape %y : (tensor<32768xf32>) -> tensor<16x8x256xf32>
  %r0 = stablehlo.dot_general %x3, %y3, batching_dims = [1, 0] x [0, 1], contracting_dims = [2] x [2] : (tensor<8x16x256xf32>, tensor<16x8x256xf32>) -> tensor<16x8xf32>
  %x2 = stablehlo.reshape %x : (tensor<32768xf32>) -> tensor<128x256xf32>
  %y2 = stablehlo.reshape %y : (tensor<32768xf32>) -> tensor<128x256xf32>
  %r1 = stablehlo.dot_general %x2, %y2, contracting_dims = [0, 1] x [0, 1] : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<f32>
  %xb = stablehlo.convert %x : (tensor<32768xf32>) -> tensor<32768xbf16>
  %yb = stablehlo.convert %y : (tensor<32768xf32>) -> tensor<32768xbf16>
  %xb3 = stablehlo.reshape %xb : (tensor<32768xbf16>) -> tensor<64x1x512xbf16>
  %yb2 = stablehlo.reshape %yb : (tensor<32768xbf16>) -> tensor<64x512xbf16>
  %r2 = stablehlo.dot_general %xb3, %yb2, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<64x1x512xbf16>, tensor<64x512xbf16>) -> tensor<64x1xbf16>
  %p = stablehlo.dot_general %x2, %y2, contracting_dims = [1] x [1] : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x128xf32>
  %s = stablehlo.slice %p [0:1, 0:128] : (tensor<128x128xf32>) -> tensor<1x128xf32>
  %r3 = stablehlo.dot_general %s, %s, contracting_dims = [0, 1] x [0, 1] : (tensor<1x128xf32>, tensor<1x128xf32>) -> tensor<f32>
  return %r0, %r1, %r2, %r3 : tensor<16x8xf32>, tensor<f32>, tensor<64x1xbf16>, tensor<f32>
}
