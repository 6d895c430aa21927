// A hundred thousand devices: the program of one of them, priced in memory and time of a small program. Groups of neighbours stay in a
// machine; those of devices 32 apart go over the network of 1563 machines.
// run: otrn prof %s --instance=trn2.48xlarge --lnc=2 --cache=off 2>/dev/null | sed 's/  */ /g'
// expect: devices 100032 of 2 cores each
// expect: 200064 cores on 1563 machines of trn2.48xlarge
// expect: all_reduce 3126 devices, 32 apart hierarchical ring, network 1
// expect: all_reduce 32 devices mesh, machine 1
// run: otrn predict %s --instance=trn2.48xlarge --nodes=1563 --lnc=2 --cache=off --json 2>/dev/null
// expect: "exposed_comm_share": 0.
module attributes {mhlo.num_partitions = 100032 : i32} {
  sdy.mesh @mesh = <["data"=3126, "model"=32]>
  func.func public @main(%a: tensor<3126x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>},
                         %b: tensor<4096x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})
      -> (tensor<3126x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, tensor<4096x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<3126x4096xf32>, tensor<4096x256xf32>) -> tensor<3126x256xf32>
    %1 = stablehlo.dot_general %a, %0, contracting_dims = [0] x [0] : (tensor<3126x4096xf32>, tensor<3126x256xf32>) -> tensor<4096x256xf32>
    return %0, %1 : tensor<3126x256xf32>, tensor<4096x256xf32>
  }
}
