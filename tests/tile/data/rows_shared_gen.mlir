func.func public @main() -> (tensor<16x512x64xf32>, tensor<16x64xf32>, tensor<4x128xi1>, tensor<4x8x128x64xbf16>) {
  %x0 = stablehlo.iota dim = 0 : tensor<524288xf32>
  %x1 = stablehlo.sine %x0 : tensor<524288xf32>
  %x = stablehlo.reshape %x1 : (tensor<524288xf32>) -> tensor<16x512x64xf32>
  %s0 = stablehlo.iota dim = 0 : tensor<1024xf32>
  %s1 = stablehlo.cosine %s0 : tensor<1024xf32>
  %s = stablehlo.reshape %s1 : (tensor<1024xf32>) -> tensor<16x64xf32>
  %k0 = stablehlo.iota dim = 0 : tensor<512xi32>
  %three = stablehlo.constant dense<3> : tensor<512xi32>
  %k1 = stablehlo.remainder %k0, %three : tensor<512xi32>
  %zero = stablehlo.constant dense<0> : tensor<512xi32>
  %k2 = stablehlo.compare NE, %k1, %zero, SIGNED : (tensor<512xi32>, tensor<512xi32>) -> tensor<512xi1>
  %k = stablehlo.reshape %k2 : (tensor<512xi1>) -> tensor<4x128xi1>
  %q0 = stablehlo.iota dim = 0 : tensor<262144xf32>
  %q1 = stablehlo.sine %q0 : tensor<262144xf32>
  %q2 = stablehlo.convert %q1 : (tensor<262144xf32>) -> tensor<262144xbf16>
  %q = stablehlo.reshape %q2 : (tensor<262144xbf16>) -> tensor<4x8x128x64xbf16>
  return %x, %s, %k, %q : tensor<16x512x64xf32>, tensor<16x64xf32>, tensor<4x128xi1>, tensor<4x8x128x64xbf16>
}
