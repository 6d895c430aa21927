// A mesh is told by its shape: a program over a hundred thousand devices compiles and is priced, its sums over the network in stages.
// run: otrn prof %s --instance=trn2.48xlarge 2>/dev/null
// expect: devices        102400 of 2 cores each
// expect: on 1600 machines of trn2.48xlarge
// expect: all_reduce           1600 devices, 64 apart
// run: otrn predict %s --instance=trn2.48xlarge --nodes=1600 --json 2>/dev/null
// expect: "devices": 102400,
// expect: "ranks": 1600, "groups": 64, "stride": 64
// run: sed 's/1600/16400/g' %s >%t/more.mlir; otrn prof %t/more.mlir
// expect: a mesh has no devices, or more than 1048576
// status: 1
module attributes {mhlo.num_partitions = 102400 : i32} {
  sdy.mesh @mesh = <["dp"=1600, "tp"=64]>
  func.func public @main(%x: tensor<204800x256xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"dp"}, {}]>},
                         %w: tensor<256x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"tp"}]>})
      -> (tensor<256x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"tp"}]>}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<204800x256xbf16>, tensor<256x4096xbf16>) -> tensor<204800x4096xbf16>
    %1 = stablehlo.tanh %0 : tensor<204800x4096xbf16>
    %2 = stablehlo.dot_general %x, %1, contracting_dims = [0] x [0] : (tensor<204800x256xbf16>, tensor<204800x4096xbf16>) -> tensor<256x4096xbf16>
    return %2 : tensor<256x4096xbf16>
  }
}
