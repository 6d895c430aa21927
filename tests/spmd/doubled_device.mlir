// A mesh that names a device twice leaves another without a place.
// run: otrn compile %s -o %t/out.otrn
// status: 1
// expect: a mesh names a device twice
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=4], device_ids=[0, 2, 2, 1]>
  func.func public @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    return %a : tensor<8xf32>
  }
}
