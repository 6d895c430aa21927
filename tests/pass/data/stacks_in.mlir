func.func public @main() -> (tensor<4x64x512xf32>, tensor<4x64x512xf32>, tensor<128x64xf32>, tensor<f32>) {
  %n = stablehlo.iota dim = 0 : tensor<131072xi32>
  %m = stablehlo.constant dense<1031> : tensor<131072xi32>
  %r = stablehlo.remainder %n, %m : tensor<131072xi32>
  %f = stablehlo.convert %r : (tensor<131072xi32>) -> tensor<131072xf32>
  %c = stablehlo.constant dense<1.7e-4> : tensor<131072xf32>
  %half = stablehlo.constant dense<0.09> : tensor<131072xf32>
  %s = stablehlo.multiply %f, %c : tensor<131072xf32>
  %v = stablehlo.subtract %s, %half : tensor<131072xf32>
  %w = stablehlo.reshape %v : (tensor<131072xf32>) -> tensor<4x64x512xf32>
  %g = stablehlo.cosine %w : tensor<4x64x512xf32>
  %a = stablehlo.slice %v [0:8192] : (tensor<131072xf32>) -> tensor<8192xf32>
  %x = stablehlo.reshape %a : (tensor<8192xf32>) -> tensor<128x64xf32>
  %t = stablehlo.constant dense<0.03> : tensor<f32>
  return %w, %g, %x, %t : tensor<4x64x512xf32>, tensor<4x64x512xf32>, tensor<128x64xf32>, tensor<f32>
}
