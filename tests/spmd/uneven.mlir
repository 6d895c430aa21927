// Parts of unequal size are refused at the border of the program.
// run: otrn compile %s -o %t/out.otrn
// status: 1
// expect: dimension 0 of size 6 cannot be cut into 4 equal parts
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%a: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<6xf32> {
    return %a : tensor<6xf32>
  }
}
