// What rows_period.mlir reads.
func.func @main() -> (tensor<64x16x1xf32>, tensor<16x16xf32>) {
  %i = stablehlo.iota dim = 0 : tensor<1024xf32>
  %s = stablehlo.sine %i : tensor<1024xf32>
  %x = stablehlo.reshape %s : (tensor<1024xf32>) -> tensor<64x16x1xf32>
  %t = stablehlo.slice %i [0:256] : (tensor<1024xf32>) -> tensor<256xf32>
  %y = stablehlo.reshape %t : (tensor<256xf32>) -> tensor<16x16xf32>
  return %x, %y : tensor<64x16x1xf32>, tensor<16x16xf32>
}
