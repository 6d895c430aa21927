// Two chains that one op reads become one group: no op is left between. Fused or not, the bits are the same.
// run: otrn compile %s --dump=fuse --cache=off -o %t/fused.otrn > %t/fused.mlir
// run: otrn compile %s --disable-pass=fuse --cache=off -o %t/plain.otrn
// run: otrn run %t/fused.otrn --input=%S/data/x_4x6.npy --output=%t/a && otrn run %t/plain.otrn --input=%S/data/x_4x6.npy --output=%t/b && otrn eval %t/fused.mlir --input=%S/data/x_4x6.npy
// run: cmp %t/a/result_0.npy %t/b/result_0.npy && cmp %t/a/result_1.npy %t/b/result_1.npy && cmp %t/a/result_2.npy %t/b/result_2.npy
// run: grep -c '"otrn.fused"' %t/fused.mlir
// expect: 2
func.func public @main(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4xf32>, tensor<6xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %a = stablehlo.exponential %x : tensor<4x6xf32>
  %b = stablehlo.negate %x : tensor<4x6xf32>
  %c = stablehlo.multiply %b, %x : tensor<4x6xf32>
  %d = stablehlo.add %a, %x : tensor<4x6xf32>
  %e = stablehlo.subtract %d, %c : tensor<4x6xf32>
  %n = stablehlo.convert %x : (tensor<4x6xf32>) -> tensor<4x6xbf16>
  %m = stablehlo.multiply %n, %n : tensor<4x6xbf16>
  %w = stablehlo.convert %m : (tensor<4x6xbf16>) -> tensor<4x6xf32>
  %r = stablehlo.reduce(%w init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  %k = stablehlo.reduce(%w init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<6xf32>
  return %e, %r, %k : tensor<4x6xf32>, tensor<4xf32>, tensor<6xf32>
}
