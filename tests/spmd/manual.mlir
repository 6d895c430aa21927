// A manual region is taken in as it is; arguments that lie as it wants them need no collective.
// run: otrn compile %s --dump=spmd -o %t/out.otrn
// expect: func.func public @main(%arg0: tensor<2x4xf32> {otrn.sharding = "2,2|0,1,2,3"}, %arg1: tensor<4x6xf32> {otrn.sharding = "2,1|0,2,1,3"})
// expect: stablehlo.all_reduce
// expect-not: stablehlo.all_gather
// run: otrn dis %t/out.otrn
// expect: .partitions 4
// expect: .arg f32[2,4] sharding="2,2|0,1,2,3"
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>) -> tensor<4x6xf32> {
    %0 = "sdy.manual_computation"(%a, %b) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>, <@mesh, [{"y"}, {}]>]>, manual_axes = #sdy.manual_axes<{"x", "y"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}> ({
    ^bb0(%c: tensor<2x4xf32>, %d: tensor<4x6xf32>):
      %1 = stablehlo.dot_general %c, %d, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
      %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%e: tensor<f32>, %f: tensor<f32>):
        %3 = stablehlo.add %e, %f : tensor<f32>
        stablehlo.return %3 : tensor<f32>
      }) : (tensor<2x6xf32>) -> tensor<2x6xf32>
      stablehlo.return %2 : tensor<2x6xf32>
    }) : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  }
}
