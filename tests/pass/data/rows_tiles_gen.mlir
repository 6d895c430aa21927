func.func public @main() -> (tensor<512x1024xbf16>, tensor<1024x512xbf16>, tensor<512x512xbf16>, tensor<512xbf16>) {
  %i = stablehlo.iota dim = 0 : tensor<524288xf32>
  %s = stablehlo.sine %i : tensor<524288xf32>
  %n = stablehlo.convert %s : (tensor<524288xf32>) -> tensor<524288xbf16>
  %x = stablehlo.reshape %n : (tensor<524288xbf16>) -> tensor<512x1024xbf16>
  %w = stablehlo.reshape %n : (tensor<524288xbf16>) -> tensor<1024x512xbf16>
  %half = stablehlo.slice %n [0:262144] : (tensor<524288xbf16>) -> tensor<262144xbf16>
  %old = stablehlo.reshape %half : (tensor<262144xbf16>) -> tensor<512x512xbf16>
  %bias = stablehlo.slice %n [100:612] : (tensor<524288xbf16>) -> tensor<512xbf16>
  return %x, %w, %old, %bias : tensor<512x1024xbf16>, tensor<1024x512xbf16>, tensor<512x512xbf16>, tensor<512xbf16>
}
