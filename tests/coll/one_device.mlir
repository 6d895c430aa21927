// On one device a group of everybody is that device alone; listed groups must be there.
// run: otrn run --cache=off %s; otrn eval %s; otrn prof --cache=off %s
// expect: result 0: tensor<ui32>: 0
// expect: result 1: tensor<2xf32>: 1 2
// expect: result 0: tensor<ui32>: 0
// expect: result 1: tensor<2xf32>: 1 2
// expect: modelled time
func.func @main() -> (tensor<ui32>, tensor<2xf32>) {
  %p = stablehlo.partition_id : tensor<ui32>
  %a = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %r = "stablehlo.all_reduce"(%a) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<> : tensor<0x0xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids}
    : (tensor<2xf32>) -> tensor<2xf32>
  %g = "stablehlo.all_gather"(%r) {all_gather_dim = 0 : i64, replica_groups = dense<[[0]]> : tensor<1x1xi64>} : (tensor<2xf32>) -> tensor<2xf32>
  return %p, %g : tensor<ui32>, tensor<2xf32>
}
