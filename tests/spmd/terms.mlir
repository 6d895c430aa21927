// Two products added up, each a term on every device: they are added up first, turned and scaled,
// and combined once. What the program wants whole in between is combined where it is read, here into the parts of the reader.
// run: otrn compile %s --dump=spmd -o %t/out.otrn
// expect: stablehlo.dot_general
// expect: stablehlo.dot_general
// expect: stablehlo.add
// expect: stablehlo.transpose
// expect: stablehlo.reduce_scatter
// expect: (tensor<8x8xf32>) -> tensor<4x8xf32>
// expect: stablehlo.tanh
// expect: tensor<4x8xf32>
// expect-not: all_reduce
// expect-not: all_gather
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                         %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                         %v: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                         %w: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
      -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    %0 = stablehlo.dot_general %a, %v, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = stablehlo.dot_general %b, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = stablehlo.add %0, %1 : tensor<8x8xf32>
    %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %c = stablehlo.constant dense<5.000000e-01> : tensor<8x8xf32>
    %4 = stablehlo.multiply %3, %c : tensor<8x8xf32>
    %5 = sdy.sharding_constraint %4 <@mesh, [{}, {}]> : tensor<8x8xf32>
    %6 = stablehlo.tanh %5 : tensor<8x8xf32>
    return %6 : tensor<8x8xf32>
  }
}
