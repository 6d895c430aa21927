// A collective whose operand is there goes on beside the products that stand before it: its result lies where none of them reads or writes.
// run: otrn prof %s --target=trn1
// expect: % of the step, 0.0 % not hidden
// Where there is no room for that, it lies where there is some.
// run: sed 's/^hbm_bytes_per_core = [0-9]*/hbm_bytes_per_core = 50000000/' chips/trn1.chip >%t/small.chip && otrn prof %s --target=%t/small.chip
// expect: HBM planned    46.14 MB
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%a: tensor<2048x2048xbf16>, %b: tensor<2048x2048xbf16>, %c: tensor<1024x2048xbf16>) -> tensor<2048x2048xbf16> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %1 = stablehlo.dot_general %0, %a, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %2:2 = "stablehlo.optimization_barrier"(%c, %1) : (tensor<1024x2048xbf16>, tensor<2048x2048xbf16>) -> (tensor<1024x2048xbf16>, tensor<2048x2048xbf16>)
    %3 = "stablehlo.all_gather"(%2#0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<1024x2048xbf16>) -> tensor<2048x2048xbf16>
    %4 = stablehlo.dot_general %2#1, %3, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    return %4 : tensor<2048x2048xbf16>
  }
}
