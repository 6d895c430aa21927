// Control flow waits for every collective: a sum that nothing before it would hide stands behind it. One beside a product stays where it is.
// run: otrn compile %s --dump=buckets -o %t/out.otrn | grep -oE '"stablehlo.(all_reduce|if|dot_general)"'
// expect: "stablehlo.dot_general"
// expect: "stablehlo.if"
// expect: "stablehlo.all_reduce"
// expect: "stablehlo.all_reduce"
// expect: "stablehlo.dot_general"
// expect: "stablehlo.if"
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%a: tensor<2048x2048xf32>, %p: tensor<i1>) -> (tensor<2048x2048xf32>, tensor<2048x2048xf32>, tensor<64xf32>) {
    %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
    %r = "stablehlo.all_reduce"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
    %1 = "stablehlo.if"(%p) ({
      %t = stablehlo.tanh %0 : tensor<2048x2048xf32>
      stablehlo.return %t : tensor<2048x2048xf32>
    }, {
      stablehlo.return %0 : tensor<2048x2048xf32>
    }) : (tensor<i1>) -> tensor<2048x2048xf32>
    %2 = stablehlo.slice %1 [0:1, 0:64] : (tensor<2048x2048xf32>) -> tensor<1x64xf32>
    %3 = stablehlo.reshape %2 : (tensor<1x64xf32>) -> tensor<64xf32>
    %4 = "stablehlo.all_reduce"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<64xf32>) -> tensor<64xf32>
    %5 = stablehlo.dot_general %1, %a, contracting_dims = [1] x [0] : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
    %6 = "stablehlo.if"(%p) ({
      %t = stablehlo.tanh %5 : tensor<2048x2048xf32>
      stablehlo.return %t : tensor<2048x2048xf32>
    }, {
      stablehlo.return %5 : tensor<2048x2048xf32>
    }) : (tensor<i1>) -> tensor<2048x2048xf32>
    return %r, %6, %4 : tensor<2048x2048xf32>, tensor<2048x2048xf32>, tensor<64xf32>
  }
}
