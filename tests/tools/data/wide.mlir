func.func public @main(%x: tensor<2xf64>) -> tensor<2xf64> {
  %0 = stablehlo.add %x, %x : tensor<2xf64>
  return %0 : tensor<2xf64>
}
