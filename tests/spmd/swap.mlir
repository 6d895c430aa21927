// A cut that goes to another dimension is an all-to-all, the same parts on other devices a permutation; what is cut finer
// than wanted is gathered only that far, and terms over two axes are scattered over the one that is wanted, summed over the other.
// run: otrn compile %s --dump=spmd -o %t/out.otrn
// expect: stablehlo.all_to_all
// expect: concat_dimension = 0
// expect: replica_groups = dense<[[0, 1], [2, 3]]>
// expect: split_dimension = 1
// expect: (tensor<4x8xf32>) -> tensor<8x4xf32>
// expect: stablehlo.collective_permute
// expect: dense<[[0, 0], [1, 2], [2, 1], [3, 3]]>
// expect: stablehlo.all_gather
// expect: replica_groups = dense<[[0, 1], [2, 3]]>
// expect: (tensor<2x8xf32>) -> tensor<4x8xf32>
// expect: stablehlo.reduce_scatter
// expect: replica_groups = dense<[[0, 1], [2, 3]]>
// expect: (tensor<8x8xf32>) -> tensor<4x8xf32>
// expect: stablehlo.all_reduce
// expect: replica_groups = dense<[[0, 2], [1, 3]]>
// expect: (tensor<4x8xf32>) -> tensor<4x8xf32>
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>},
                         %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                         %c: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>},
                         %d: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}]>},
                         %e: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>})
      -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>},
          tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
          tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
          tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) {
    %0 = stablehlo.negate %a : tensor<8x8xf32>
    %1 = stablehlo.negate %b : tensor<8x8xf32>
    %2 = stablehlo.negate %c : tensor<8x8xf32>
    %3 = stablehlo.dot_general %d, %e, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0, %1, %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  }
}
