// Collectives of two axes of a mesh have a stream each: over other links they go beside each other. Those of one axis keep their order.
// run: otrn compile %s --target=trn1 --lnc=1 --dump=tile | grep collective | grep -o "queue=[0-9]*"
// run: otrn prof %s --lnc=1 --instance=trn1.2xlarge 2>/dev/null
// run: otrn prof %s --lnc=1 --instance=trn1.2xlarge --trace=%t/t.json >/dev/null 2>&1; grep -o '"devices":2,"apart":2,"bytes":[0-9]*' %t/t.json
// expect: queue=14
// expect: queue=12
// expect: queue=14
// expect: all_reduce           2 devices, 2 apart       ring, network                        2   8.389 MB
// expect: all_reduce           2 devices                chip                                 1   4.194 MB     131.35         0.00
// expect: "devices":2,"apart":2,"bytes":4194304
module @streams attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%a: tensor<1048576xf32>, %b: tensor<1048576xf32>, %c: tensor<1048576xf32>) -> (tensor<1048576xf32>, tensor<1048576xf32>, tensor<1048576xf32>) {
  %0 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<1048576xf32>) -> tensor<1048576xf32>
  %1 = "stablehlo.all_reduce"(%b) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<1048576xf32>) -> tensor<1048576xf32>
  %2 = "stablehlo.all_reduce"(%c) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<1048576xf32>) -> tensor<1048576xf32>
  return %0, %1, %2 : tensor<1048576xf32>, tensor<1048576xf32>, tensor<1048576xf32>
}
}
