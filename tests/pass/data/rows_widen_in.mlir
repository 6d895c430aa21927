func.func @main() -> (tensor<512x2048xf32>, tensor<512x2048xbf16>) {
  %i = stablehlo.iota dim = 0 : tensor<1048576xf32>
  %s = stablehlo.sine %i : tensor<1048576xf32>
  %n = stablehlo.convert %s : (tensor<1048576xf32>) -> tensor<1048576xbf16>
  %w = stablehlo.reshape %i : (tensor<1048576xf32>) -> tensor<512x2048xf32>
  %g = stablehlo.reshape %n : (tensor<1048576xbf16>) -> tensor<512x2048xbf16>
  return %w, %g : tensor<512x2048xf32>, tensor<512x2048xbf16>
}
