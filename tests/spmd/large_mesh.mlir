// A program for more devices than one run can have (OTRN_MAX_DEVICES): it is cut, compiled and priced.
// run: otrn compile %s -o %t/out.otrn && otrn dis %t/out.otrn | grep '^.partitions'
// expect: .partitions 4096
// run: otrn prof %t/out.otrn --instance=trn2.48xlarge
// expect: modelled time
module attributes {mhlo.num_partitions = 4096 : i32} {
  sdy.mesh @mesh = <["data"=64, "model"=64]>
  func.func public @main(%a: tensor<4096x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>},
                         %b: tensor<1024x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})
      -> (tensor<4096x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4096x1024xf32>, tensor<1024x256xf32>) -> tensor<4096x256xf32>
    return %0 : tensor<4096x256xf32>
  }
}
