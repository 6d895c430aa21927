// A constraint that leaves dimensions open lets a value lie as it does there; values of one group lie alike; parts become
// terms without meeting: each device has its part among zeros.
// run: otrn compile %s --dump=spmd -o %t/out.otrn
// expect: -> (tensor<4x6xf32> {otrn.sharding = "2,1|0,1"}, tensor<4x6xi32> {otrn.sharding = "2,1|0,1"}, tensor<8x6xf32>
// expect: otrn.sharding = "1,1+2|0,1"
// expect-not: stablehlo.all_gather
// expect-not: stablehlo.all_reduce
// expect: stablehlo.dynamic_update_slice
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  sdy.mesh @empty_mesh = <[]>
  func.func public @main(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<6xi32>)
      -> (tensor<8x6xf32>, tensor<8x6xi32>, tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"x"}>}) {
    %0 = sdy.sharding_constraint %a <@empty_mesh, [{?}, {}]> : tensor<8x6xf32>
    %1 = stablehlo.sine %0 : tensor<8x6xf32>
    %2 = stablehlo.convert %1 : (tensor<8x6xf32>) -> tensor<8x6xi32>
    %3 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<6xi32>) -> tensor<8x6xi32>
    sdy.sharding_group %2 group_id=0 : tensor<8x6xi32>
    sdy.sharding_group %3 group_id=0 : tensor<8x6xi32>
    return %1, %3, %a : tensor<8x6xf32>, tensor<8x6xi32>, tensor<8x6xf32>
  }
}
