// Groups told by the axes of a mesh of 262,144 devices: nobody lists them.
// run: otrn prof %s --instance=trn2.48xlarge --lnc=2 --cache=off 2>/dev/null | sed 's/  */ /g'
// expect: devices 262144 of 2 cores each
// expect: all_reduce 4096 devices, 64 apart
// expect: all_gather 8 devices, 8 apart
// run: sed 's/4096>/65536>/' %s >%t/more.mlir; otrn prof %t/more.mlir --instance=trn2.48xlarge
// expect: a mesh has no devices, more than a program may have
// status: 1
module attributes {mhlo.num_partitions = 262144 : i32} {
  func.func @main(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<8192xf32>) {
    %0 = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "dp", size = 4096>, #stablehlo.mesh_axis<name = "fsdp", size = 8>, #stablehlo.mesh_axis<name = "tp", size = 8>]>, axes = [#stablehlo.axis_ref<name = "dp">]>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<1024xf32>) -> tensor<1024xf32>
    %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "dp", size = 4096>, #stablehlo.mesh_axis<name = "fsdp", size = 8>, #stablehlo.mesh_axis<name = "tp", size = 8>]>, axes = [#stablehlo.axis_ref<name = "fsdp">]>, use_global_device_ids}> : (tensor<1024xf32>) -> tensor<8192xf32>
    return %0, %1 : tensor<1024xf32>, tensor<8192xf32>
  }
}
