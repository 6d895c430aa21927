// Sums that are mostly bytes stay apart, so that each begins when its operand is there; a small one that is there as soon goes with the first, and
// all are one where latency is most of what they take (a chip with ten times the latency).
// run: otrn compile %s --dump=buckets -o %t/out.otrn | grep all_reduce
// expect: :2 = "stablehlo.all_reduce"
// expect: "stablehlo.all_reduce"(%
// run: sed -E 's/^(collective_[a-z_]*(start|latency)) = ([0-9]+)/\1 = \39/' chips/trn2.chip >%t/late.chip && otrn compile %s --dump=buckets --target=%t/late.chip -o %t/out.otrn | grep all_reduce
// expect: :3 = "stablehlo.all_reduce"
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%a: tensor<1024x1024xf32>, %b: tensor<8xf32>) -> (tensor<1024x1024xf32>, tensor<8xf32>, tensor<1024x1024xf32>) {
    %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %1 = "stablehlo.all_reduce"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %2 = stablehlo.dot_general %a, %0, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    %3 = stablehlo.exponential %b : tensor<8xf32>
    %4 = "stablehlo.all_reduce"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<8xf32>) -> tensor<8xf32>
    %5 = "stablehlo.all_reduce"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %1, %4, %5 : tensor<1024x1024xf32>, tensor<8xf32>, tensor<1024x1024xf32>
  }
}
