module attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["dp"=8]>
  func.func public @main(%x: tensor<8192x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"dp"}, {}]>}, %w: tensor<2048x2048xf32>)
      -> (tensor<8192x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"dp"}, {}]>}) {
    %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8192x2048xf32>, tensor<2048x2048xf32>) -> tensor<8192x2048xf32>
    return %y : tensor<8192x2048xf32>
  }
}
