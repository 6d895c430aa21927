// Equal ops once; unequal attributes keep ops apart; a barrier keeps what it guards.
// run: otrn compile %s --dump=dce --stats -o %t/out.otrn
// expect: stablehlo.exponential
// expect-not: stablehlo.sine
func.func public @main(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = stablehlo.exponential %x : tensor<4x4xf32>
  %1 = stablehlo.exponential %x : tensor<4x4xf32>
  %2 = stablehlo.add %0, %1 : tensor<4x4xf32>
  %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = stablehlo.reverse %2, dims = [1] : tensor<4x4xf32>
  %5 = stablehlo.reverse %2, dims = [0] : tensor<4x4xf32>
  %dead = stablehlo.sine %x : tensor<4x4xf32>
  return %3, %4, %5 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
