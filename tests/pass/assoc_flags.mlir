// As assoc.mlir, with dropout: flags that reshapes have made of those of the product are the same flags, others are not.
// run: otrn compile %s --cache=off --dump=assoc -o %t/a.otrn | grep -c '}) : (tensor<4x128x1024xf32>, tensor<f32>)'
// expect: 2
// run: otrn run %t/a.otrn --check --output=%t/a && otrn eval %s --output=%t/b
// run: otrn eval %S/data/assoc_same.mlir --input=%t/a/result_0.npy,%t/a/result_1.npy,%t/b/result_0.npy,%t/b/result_1.npy
func.func @main() -> (tensor<4x128xf32>, tensor<4x128xf32>) {
  %i = stablehlo.iota dim = 0 : tensor<524288xf32>
  %c = stablehlo.constant dense<0.37> : tensor<524288xf32>
  %j = stablehlo.multiply %i, %c : tensor<524288xf32>
  %s = stablehlo.sine %j : tensor<524288xf32>
  %cs = stablehlo.constant dense<-0.6> : tensor<524288xf32>
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
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [2] : (tensor<4x128x1024xf32>, tensor<f32>) -> tensor<4x128xf32>
  %wide = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<4x128xf32>) -> tensor<4x128x1024xf32>
  %y = stablehlo.divide %e, %wide : tensor<4x128x1024xf32>
  %yn = stablehlo.convert %y : (tensor<4x128x1024xf32>) -> tensor<4x128x1024xbf16>
  %vn = stablehlo.convert %v : (tensor<4x1024x32xf32>) -> tensor<4x1024x32xbf16>
  %even = stablehlo.compare GT, %s, %cs : (tensor<524288xf32>, tensor<524288xf32>) -> tensor<524288xi1>
  %d = stablehlo.reshape %even : (tensor<524288xi1>) -> tensor<4x128x1024xi1>
  %d1 = stablehlo.reshape %d : (tensor<4x128x1024xi1>) -> tensor<1x4x128x1024xi1>
  %d2 = stablehlo.reshape %d1 : (tensor<1x4x128x1024xi1>) -> tensor<4x128x1024xi1>
  %d3 = stablehlo.not %d : tensor<4x128x1024xi1>
  %none = stablehlo.constant dense<0.0> : tensor<4x128x1024xbf16>
  %nothing = stablehlo.constant dense<0.0> : tensor<4x128x1024xf32>
  %yd = stablehlo.select %d, %yn, %none : tensor<4x128x1024xi1>, tensor<4x128x1024xbf16>
  %o = stablehlo.dot_general %yd, %vn, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x128x1024xbf16>, tensor<4x1024x32xbf16>) -> tensor<4x128x32xf32>
  %dz = stablehlo.multiply %dy, %o : tensor<4x128x32xf32>
  %dn = stablehlo.convert %dz : (tensor<4x128x32xf32>) -> tensor<4x128x32xbf16>
  %p = stablehlo.dot_general %dn, %vn, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x128x32xbf16>, tensor<4x1024x32xbf16>) -> tensor<4x128x1024xf32>
  %pd = stablehlo.select %d2, %p, %nothing : tensor<4x128x1024xi1>, tensor<4x128x1024xf32>
  %x = stablehlo.multiply %pd, %e : tensor<4x128x1024xf32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [2] : (tensor<4x128x1024xf32>, tensor<f32>) -> tensor<4x128xf32>
  %p3 = stablehlo.select %d3, %p, %nothing : tensor<4x128x1024xi1>, tensor<4x128x1024xf32>
  %x2 = stablehlo.multiply %p3, %e : tensor<4x128x1024xf32>
  %r2 = stablehlo.reduce(%x2 init: %z) applies stablehlo.add across dimensions = [2] : (tensor<4x128x1024xf32>, tensor<f32>) -> tensor<4x128xf32>
  func.return %r, %r2 : tensor<4x128xf32>, tensor<4x128xf32>
}
