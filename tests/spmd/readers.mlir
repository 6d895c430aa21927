// dy lies in rows, w in columns over the same devices. The product's reader has columns of the gradient's other factor, so dy
// (small) is gathered, not what is made of it (large).
// run: otrn compile %s --dump=spmd -o %t/out.otrn
// expect: stablehlo.all_gather
// expect: (tensor<4x8xf32>) -> tensor<8x8xf32>
// expect: stablehlo.dot_general
// expect: -> tensor<8x32xf32>
// expect: stablehlo.multiply
// expect: tensor<8x32xf32>
// expect-not: all_to_all
// expect-not: reduce_scatter
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%dy: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                         %w: tensor<64x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                         %h: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<8x64xf32> {
    %0 = stablehlo.dot_general %dy, %w, contracting_dims = [1] x [1] : (tensor<8x8xf32>, tensor<64x8xf32>) -> tensor<8x64xf32>
    %1 = stablehlo.multiply %0, %h : tensor<8x64xf32>
    return %1 : tensor<8x64xf32>
  }
}
