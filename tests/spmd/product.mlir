// Rows of the left and sums of the product lie on devices: each has a term, combined over those that share its rows and
// scattered as the result is wanted. What the bias is repeated over is made in parts.
// run: otrn compile %s --dump=spmd,dce -o %t/out.otrn
// expect: (%arg0: tensor<4x4xf32>
// expect: stablehlo.dot_general
// expect: (tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
// expect: stablehlo.reduce_scatter
// expect: replica_groups = dense<[[0, 1], [2, 3]]>
// expect: -> tensor<4x3xf32>
// expect: stablehlo.broadcast_in_dim
// expect: -> tensor<4x3xf32>
// expect: stablehlo.add
// expect: tensor<4x3xf32>
// expect-not: all_gather
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                         %b: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>},
                         %c: tensor<6xf32>) -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<6xf32>) -> tensor<8x6xf32>
    %2 = stablehlo.add %0, %1 : tensor<8x6xf32>
    return %2 : tensor<8x6xf32>
  }
}
