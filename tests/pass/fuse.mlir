// An elementwise chain becomes one op with one region: a value read twice inside, a splat constant, a broadcast
// scalar, and a value in the middle that is also returned. The reduction closes the group. Fused or not, the bits
// are the same, and what is printed reads back.
// run: otrn compile %s --dump=fuse --cache=off -o %t/fused.otrn
// expect: :2 = "otrn.fused"
// run: otrn compile %s --dump=fuse --cache=off -o %t/fused.otrn > %t/fused.mlir && otrn compile %t/fused.mlir -o %t/again.otrn
// run: otrn compile %s --disable-pass=fuse --cache=off -o %t/plain.otrn
// run: otrn run %t/fused.otrn --input=%S/data/x_4x6.npy --output=%t/a && otrn run %t/plain.otrn --input=%S/data/x_4x6.npy --output=%t/b && otrn eval %t/fused.mlir --input=%S/data/x_4x6.npy
// run: cmp %t/a/result_0.npy %t/b/result_0.npy && cmp %t/a/result_1.npy %t/b/result_1.npy && cmp %t/a/result_2.npy %t/b/result_2.npy
func.func public @main(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4xf32>, tensor<4x6xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %half = stablehlo.constant dense<0.5> : tensor<4x6xf32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<f32>
  %w = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
  %a = stablehlo.subtract %x, %w : tensor<4x6xf32>
  %b = stablehlo.exponential %a : tensor<4x6xf32>
  %c = stablehlo.multiply %b, %b : tensor<4x6xf32>
  %d = stablehlo.multiply %c, %half : tensor<4x6xf32>
  %e = stablehlo.add %d, %b : tensor<4x6xf32>
  %r = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  return %b, %r, %e : tensor<4x6xf32>, tensor<4xf32>, tensor<4x6xf32>
}
