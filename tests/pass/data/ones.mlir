// a size that comes as a scalar
func.func public @main(%n: tensor<i64>, %x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %0 = stablehlo.reshape %n : (tensor<i64>) -> tensor<1xi64>
  %three = stablehlo.constant dense<3> : tensor<1xi64>
  %1 = stablehlo.concatenate %0, %three, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %2 = stablehlo.dynamic_iota %1, dim = 1 : (tensor<2xi64>) -> tensor<?x3xf32>
  %3 = stablehlo.add %2, %x : tensor<?x3xf32>
  return %3 : tensor<?x3xf32>
}
