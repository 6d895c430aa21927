// The rule a call carries takes the argument's cut to what is behind the call; the call itself works on whole values.
// run: otrn compile %s --dump=spmd -o %t/out.otrn; true
// expect: otrn.sharding = "2,1|0,1"
// expect: stablehlo.all_gather
// expect: "stablehlo.custom_call"
// expect: (tensor<8x4xf32>) -> tensor<8x4xf32>
// expect: stablehlo.dynamic_slice
// expect: stablehlo.sine %7 : tensor<4x4xf32>
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
    %0 = stablehlo.custom_call @somebody(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4}, custom>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.sine %0 : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}
