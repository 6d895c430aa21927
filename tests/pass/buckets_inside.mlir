// Movement before a branch, whose result a collective of the branch sums: it stands where it stood, outside.
// run: otrn compile %s --dump=buckets -o %t/out.otrn | grep -oE '"stablehlo.(all_reduce|if|transpose)"'
// expect: "stablehlo.transpose"
// expect: "stablehlo.if"
// expect: "stablehlo.all_reduce"
// expect: "stablehlo.all_reduce"
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%a: tensor<64x32xf32>, %p: tensor<i1>) -> (tensor<32x64xf32>, tensor<64x32xf32>) {
    %r = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<64x32xf32>) -> tensor<64x32xf32>
    %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32>
    %1 = "stablehlo.if"(%p) ({
      %m = "stablehlo.all_reduce"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.maximum %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<32x64xf32>) -> tensor<32x64xf32>
      stablehlo.return %m : tensor<32x64xf32>
    }, {
      stablehlo.return %t : tensor<32x64xf32>
    }) : (tensor<i1>) -> tensor<32x64xf32>
    return %1, %r : tensor<32x64xf32>, tensor<64x32xf32>
  }
}
