func.func @main() -> (tensor<16x128x32xf32>, tensor<32x2048xf32>, tensor<2048x32xf32>) {
  %i = stablehlo.iota dim = 0 : tensor<65536xf32>
  %s = stablehlo.sine %i : tensor<65536xf32>
  %x = stablehlo.reshape %s : (tensor<65536xf32>) -> tensor<16x128x32xf32>
  %w1 = stablehlo.reshape %s : (tensor<65536xf32>) -> tensor<32x2048xf32>
  %w2 = stablehlo.reshape %s : (tensor<65536xf32>) -> tensor<2048x32xf32>
  return %x, %w1, %w2 : tensor<16x128x32xf32>, tensor<32x2048xf32>, tensor<2048x32xf32>
}
