// The sum in the gradient of a softmax, over columns of y * (dy v'), is that of o * dy where o = y v is there (pass/assoc.c), and the chip
// agrees with the evaluator. With another y than that of the product it stays.
// run: otrn compile %s --cache=off --dump=assoc -o %t/a.otrn | grep -c '}) : (tensor<4x128x32xf32>, tensor<f32>)'
// expect: 1
// run: otrn run %t/a.otrn --check --output=%t/a && otrn eval %s --output=%t/b
// run: otrn eval %S/data/assoc_same.mlir --input=%t/a/result_0.npy,%t/a/result_1.npy,%t/b/result_0.npy,%t/b/result_1.npy
func.func @main() -> (tensor<4x128xf32>, tensor<4x128xf32>) {
  %i = stablehlo.iota dim = 0 : tensor<524288xf32>
  %c = stablehlo.constant dense<0.37> : tensor<524288xf32>
  %j = stablehlo.multiply %i, %c : tensor<524288xf32>
  %s = stablehlo.sine %j : tensor<524288xf32>
  %y0 = stablehlo.reshape %s : (tensor<524288xf32>) -> tensor<4x128x1024xf32>
  %k = stablehlo.iota dim = 0 : tensor<131072xf32>
  %ck = stablehlo.constant dense<0.53> : tensor<131072xf32>
  %jk = stablehlo.multiply %k, %ck : tensor<131072xf32>
  %sk = stablehlo.sine %jk : tensor<131072xf32>
  %bk = stablehlo.constant dense<1.5> : tensor<131072xf32>
  %vk = stablehlo.add %sk, %bk : tensor<131072xf32>
  %v = stablehlo.reshape %vk : (tensor<131072xf32>) -> tensor<4x1024x32xf32>
  %l = stablehlo.iota dim = 0 : tensor<16384xf32>
  %cl = stablehlo.constant dense<0.71> : tensor<16384xf32>
  %jl = stablehlo.multiply %l, %cl : tensor<16384xf32>
  %sl = stablehlo.sine %jl : tensor<16384xf32>
  %bl = stablehlo.constant dense<1.5> : tensor<16384xf32>
  %dl = stablehlo.add %sl, %bl : tensor<16384xf32>
  %dy = stablehlo.reshape %dl : (tensor<16384xf32>) -> tensor<4x128x32xf32>
  %e = stablehlo.exponential %y0 : tensor<4x128x1024xf32>
  %other = stablehlo.cosine %y0 : tensor<4x128x1024xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [2] : (tensor<4x128x1024xf32>, tensor<f32>) -> tensor<4x128xf32>
  %wide = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<4x128xf32>) -> tensor<4x128x1024xf32>
  %y = stablehlo.divide %e, %wide : tensor<4x128x1024xf32>
  %yn = stablehlo.convert %y : (tensor<4x128x1024xf32>) -> tensor<4x128x1024xbf16>
  %vn = stablehlo.convert %v : (tensor<4x1024x32xf32>) -> tensor<4x1024x32xbf16>
  %o = stablehlo.dot_general %yn, %vn, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x128x1024xbf16>, tensor<4x1024x32xbf16>) -> tensor<4x128x32xf32>
  %dz = stablehlo.multiply %dy, %o : tensor<4x128x32xf32>
  %dn = stablehlo.convert %dz : (tensor<4x128x32xf32>) -> tensor<4x128x32xbf16>
  %p = stablehlo.dot_general %dn, %vn, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x128x32xbf16>, tensor<4x1024x32xbf16>) -> tensor<4x128x1024xf32>
  %x = stablehlo.multiply %p, %e : tensor<4x128x1024xf32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [2] : (tensor<4x128x1024xf32>, tensor<f32>) -> tensor<4x128xf32>
  %x2 = stablehlo.multiply %p, %other : tensor<4x128x1024xf32>
  %r2 = stablehlo.reduce(%x2 init: %z) applies stablehlo.add across dimensions = [2] : (tensor<4x128x1024xf32>, tensor<f32>) -> tensor<4x128xf32>
  func.return %r, %r2 : tensor<4x128xf32>, tensor<4x128xf32>
}
