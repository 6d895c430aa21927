// A program may be for more devices than a process can run (OTRN_MAX_DEVICES): it compiles and is priced. A run on one device would
// give a part of the result and is refused.
// run: otrn compile %s -o %t/out.otrn && otrn prof %t/out.otrn
// expect: modelled time
// run: otrn run %s
// expect: error[USAGE]: the program is that of 2048 devices
// status: 2
module attributes {mhlo.num_partitions = 2048 : i32} {
  sdy.mesh @mesh = <["x"=2048]>
  func.func public @main() -> (tensor<2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %0 = stablehlo.iota dim = 0 : tensor<2048xf32>
    return %0 : tensor<2048xf32>
  }
}
