module @until {
  func.func public @main(%x: tensor<f32>, %w: tensor<64x64xf32>) -> (tensor<f32>, tensor<64x64xf32>) {
    %r:2 = stablehlo.while(%a = %x, %b = %w) : tensor<f32>, tensor<64x64xf32>
     cond {
      %limit = stablehlo.constant dense<1.0e3> : tensor<f32>
      %p = stablehlo.compare LT, %a, %limit, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %two = stablehlo.constant dense<2.0> : tensor<f32>
      %n = stablehlo.multiply %a, %two : tensor<f32>
      %m = stablehlo.dot_general %b, %b, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      stablehlo.return %n, %m : tensor<f32>, tensor<64x64xf32>
    }
    return %r#0, %r#1 : tensor<f32>, tensor<64x64xf32>
  }
}
