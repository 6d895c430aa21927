// What a collective reads is nobody else's memory until it is through: products behind it do not wait for it.
// run: otrn prof %s --target=trn1
// expect: % of the step, 0.0 % not hidden
// Where there is no room for that, it is free when the collective has begun.
// run: sed 's/^hbm_bytes_per_core = [0-9]*/hbm_bytes_per_core = 54000000/' chips/trn1.chip >%t/small.chip && otrn prof %s --target=%t/small.chip
// expect: HBM planned    50.33 MB
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%a: tensor<2048x2048xbf16>, %b: tensor<2048x2048xbf16>) -> (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %r = "stablehlo.all_reduce"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%x: tensor<bf16>, %y: tensor<bf16>):
      %s = stablehlo.add %x, %y : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }) : (tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %1 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %2 = stablehlo.dot_general %1, %b, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %3 = stablehlo.dot_general %2, %b, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %4 = stablehlo.dot_general %3, %a, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    return %r, %4 : tensor<2048x2048xbf16>, tensor<2048x2048xbf16>
  }
}
