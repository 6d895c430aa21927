func.func @main(%x: tensor<?x?xf32, #stablehlo.bounds<2, 4>>) -> (tensor<i32>, tensor<?xf32, #stablehlo.bounds<2>>) {
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32, #stablehlo.bounds<2, 4>>) -> tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32, #stablehlo.bounds<2, 4>>, tensor<f32>) -> tensor<?xf32, #stablehlo.bounds<2>>
  return %0, %1 : tensor<i32>, tensor<?xf32, #stablehlo.bounds<2>>
}
