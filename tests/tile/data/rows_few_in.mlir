func.func public @main() -> (tensor<2x4096xf32>, tensor<4096xf32>, tensor<2xf32>) {
  %i = stablehlo.iota dim = 0 : tensor<8192xf32>
  %s = stablehlo.sine %i : tensor<8192xf32>
  %x = stablehlo.reshape %s : (tensor<8192xf32>) -> tensor<2x4096xf32>
  %j = stablehlo.iota dim = 0 : tensor<4096xf32>
  %b = stablehlo.cosine %j : tensor<4096xf32>
  %c = stablehlo.constant dense<[1.5, -0.3]> : tensor<2xf32>
  return %x, %b, %c : tensor<2x4096xf32>, tensor<4096xf32>, tensor<2xf32>
}
