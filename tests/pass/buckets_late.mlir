// What only turns a sum stands before its reader, not behind the sum: transfers of products would wait behind it.
// run: otrn prof %s --target=trn1
// expect: % of the step, 0.0 % not hidden
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%a: tensor<2048x2048xbf16>, %b: tensor<2048x2048xbf16>) -> (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %r = "stablehlo.all_reduce"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%x: tensor<bf16>, %y: tensor<bf16>):
      %s = stablehlo.add %x, %y : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }) : (tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %t = stablehlo.transpose %r, dims = [1, 0] : (tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %2 = stablehlo.dot_general %1, %b, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %3 = stablehlo.dot_general %2, %b, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %4 = stablehlo.dot_general %3, %b, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %5 = stablehlo.dot_general %4, %b, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %6 = stablehlo.dot_general %5, %b, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %7 = stablehlo.dot_general %6, %b, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %8 = stablehlo.dot_general %7, %b, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %9 = stablehlo.dot_general %8, %b, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %10 = stablehlo.dot_general %9, %b, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %e = stablehlo.tanh %t : tensor<2048x2048xbf16>
    return %e, %10 : tensor<2048x2048xbf16>, tensor<2048x2048xbf16>
  }
}
