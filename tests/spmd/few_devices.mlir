// A mesh that names only some of its devices.
// run: otrn compile %s -o %t/out.otrn
// status: 1
// expect: a mesh names fewer devices than it has
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=4], device_ids=[0, 2]>
  func.func public @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    return %a : tensor<8xf32>
  }
}
