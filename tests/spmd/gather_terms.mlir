// Gradients of what three products and a residual read, added up as PyTorch does: the residual's first, which is no sum over devices. One sum is enough, of all three products.
// run: otrn compile %s --dump=spmd -o %t/out.otrn | grep -c '= "stablehlo.all_reduce"'
// expect: 1
module attributes {mhlo.num_partitions = 2 : i32} {
sdy.mesh @mesh = <["tp"=2]>
func.func public @main(%r: tensor<8x16xf32>, %a: tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"tp"}]>}, %x: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>}, %y: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>}, %z: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>}) -> tensor<8x16xf32> {
  %0 = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %1 = stablehlo.add %r, %0 : tensor<8x16xf32>
  %2 = stablehlo.dot_general %a, %y, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %3 = stablehlo.add %1, %2 : tensor<8x16xf32>
  %4 = stablehlo.dot_general %a, %z, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %5 = stablehlo.add %4, %3 : tensor<8x16xf32>
  return %5 : tensor<8x16xf32>
}
}
