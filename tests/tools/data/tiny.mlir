module @tiny {
  func.func public @main(%x: tensor<2x3xf32>, %w: tensor<3x2xf32>) -> (tensor<2x2xf32>) {
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %t = stablehlo.tanh %y : tensor<2x2xf32>
    return %t : tensor<2x2xf32>
  }
}
