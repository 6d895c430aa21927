func.func @main() -> (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) {
  %i = stablehlo.iota dim = 0 : tensor<1048576xf32>
  %s = stablehlo.sine %i : tensor<1048576xf32>
  %c = stablehlo.cosine %i : tensor<1048576xf32>
  %n = stablehlo.convert %s : (tensor<1048576xf32>) -> tensor<1048576xbf16>
  %m = stablehlo.convert %c : (tensor<1048576xf32>) -> tensor<1048576xbf16>
  %x = stablehlo.reshape %n : (tensor<1048576xbf16>) -> tensor<1024x1024xbf16>
  %w = stablehlo.reshape %m : (tensor<1048576xbf16>) -> tensor<1024x1024xbf16>
  return %x, %w : tensor<1024x1024xbf16>, tensor<1024x1024xbf16>
}
