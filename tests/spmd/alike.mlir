// Values of a group lie alike. What was said of one counts before anything is carried along (%z would come out of its product cut by "y"), and an
// argument that nobody spoke about is whole where it comes in and alike where it goes out.
// run: otrn compile %s --dump=spmd -o %t/out.otrn
// expect: %arg1: tensor<8xf32>, %arg2
// expect: -> (tensor<4xf32> {otrn.sharding = "2|0,1,2,3"}, tensor<4xf32> {otrn.sharding = "2|0,1,2,3"}, tensor<4x4xf32> {otrn.sharding = "2,2|0,1,2,3"}, tensor<4x4xf32> {otrn.sharding = "2,2|0,1,2,3"})
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<8xf32>,
                         %m: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
      -> (tensor<8xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
    sdy.sharding_group %a group_id=0 : tensor<8xf32>
    sdy.sharding_group %b group_id=0 : tensor<8xf32>
    %c = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
    %y = sdy.sharding_constraint %c <@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
    %z = stablehlo.dot_general %m, %m, contracting_dims = [1] x [1] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    sdy.sharding_group %y group_id=1 : tensor<8x8xf32>
    sdy.sharding_group %z group_id=1 : tensor<8x8xf32>
    return %a, %b, %y, %z : tensor<8xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  }
}
