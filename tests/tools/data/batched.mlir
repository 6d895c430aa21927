func.func @main(%a: tensor<8x64x64xbf16>, %b: tensor<8x64x64xbf16>) -> tensor<8x64x64xbf16> {
  %0 = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<8x64x64xbf16>, tensor<8x64x64xbf16>) -> tensor<8x64x64xbf16>
  return %0 : tensor<8x64x64xbf16>
}
