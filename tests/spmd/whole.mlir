// Elementwise work stays in parts; another op gathers, over devices in the mesh's own order and parts of an axis; the result is cut.
// run: otrn compile %s --dump=spmd -o %t/out.otrn
// expect: stablehlo.sine %arg0 : tensor<2x8xf32>
// expect: replica_groups = dense<[[3, 1, 0, 2]]> : tensor<1x4xi64>
// expect: stablehlo.constant dense<[0, 0, 4, 4]> : tensor<4xi32>
// expect: -> tensor<4x8xf32>
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=4], device_ids=[3, 1, 0, 2]>
  sdy.mesh @plain = <["x"=4]>
  func.func public @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@plain, [{"x":(1)2}, {}]>}) {
    %0 = stablehlo.sine %a : tensor<8x8xf32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
}
