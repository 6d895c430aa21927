func.func public @main() -> (tensor<i64>, tensor<i64>) {
  %two = stablehlo.constant dense<2> : tensor<i64>
  %three = stablehlo.constant dense<3> : tensor<i64>
  return %two, %three : tensor<i64>, tensor<i64>
}
