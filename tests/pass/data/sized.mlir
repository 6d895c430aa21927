func.func @main(%x: tensor<3x2xf32>, %n: tensor<i64>) -> (tensor<i32>, tensor<2xf32>) {
  %0 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<3x2xf32>, tensor<i64>) -> tensor<?x2xf32, #stablehlo.bounds<3, ?>>
  %s = stablehlo.get_dimension_size %0, dim = 0 : (tensor<?x2xf32, #stablehlo.bounds<3, ?>>) -> tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<?x2xf32, #stablehlo.bounds<3, ?>>, tensor<f32>) -> tensor<2xf32>
  return %s, %1 : tensor<i32>, tensor<2xf32>
}
