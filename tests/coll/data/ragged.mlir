// Of two devices; tests/coll/ragged_bad.test spoils it.
func.func public @main(%a: tensor<4x2xf32>, %b: tensor<5x2xf32>, %k: tensor<2xi32>, %l: tensor<2xi32>, %m: tensor<2xi32>, %n: tensor<2xi32>) -> tensor<5x2xf32> {
  %0 = stablehlo.custom_call @ragged_all_to_all(%a, %b, %k, %l, %m, %n) {api_version = 4 : i32, backend_config = {channel_id = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}} : (tensor<4x2xf32>, tensor<5x2xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<5x2xf32>
  return %0 : tensor<5x2xf32>
}
