// Nonsense in a sharding is told, not believed.
// run: otrn compile %s -o %t/out.otrn
// status: 1
// expect: a sharding names an axis its mesh lacks
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z"}]>}) -> tensor<8xf32> {
    return %a : tensor<8xf32>
  }
}
