// Groups told by mesh axes: an axis, two in the other order, a part of one, a mesh of the module with its devices in another order.
// run: otrn eval %s
// run: otrn run --cache=off %s
module @groups {
  sdy.mesh @m = <["x"=2, "y"=2], device_ids=[0, 2, 1, 3]>
  func.func @all(%a: tensor<1xi32>) -> (tensor<2xi32>, tensor<4xi32>, tensor<2xi32>, tensor<2xi32>) {
    %0 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, #stablehlo.mesh_axis<name = "y", size = 2>]>, axes = [#stablehlo.axis_ref<name = "x">]>} : (tensor<1xi32>) -> tensor<2xi32>
    %1 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, #stablehlo.mesh_axis<name = "y", size = 2>]>, axes = [#stablehlo.axis_ref<name = "y">, #stablehlo.axis_ref<name = "x">]>} : (tensor<1xi32>) -> tensor<4xi32>
    %2 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "z", size = 4>]>, axes = [#stablehlo.axis_ref<name = "z", sub_axis_info = (2)2>]>} : (tensor<1xi32>) -> tensor<2xi32>
    %3 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = "x">]>} : (tensor<1xi32>) -> tensor<2xi32>
    return %0, %1, %2, %3 : tensor<2xi32>, tensor<4xi32>, tensor<2xi32>, tensor<2xi32>
  }
  func.func @main() {
    %a = stablehlo.constant dense<10> : tensor<1xi32>
    %b = stablehlo.constant dense<11> : tensor<1xi32>
    %c = stablehlo.constant dense<12> : tensor<1xi32>
    %d = stablehlo.constant dense<13> : tensor<1xi32>
    %r:16 = "interpreter.run_parallel"(%a, %b, %c, %d) {programs = [[@all], [@all], [@all], [@all]]} : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>)
      -> (tensor<2xi32>, tensor<4xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<4xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<4xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<4xi32>, tensor<2xi32>, tensor<2xi32>)
    check.expect_eq_const %r#0, dense<[10, 12]> : tensor<2xi32>
    check.expect_eq_const %r#12, dense<[11, 13]> : tensor<2xi32>
    check.expect_eq_const %r#5, dense<[10, 12, 11, 13]> : tensor<4xi32>
    check.expect_eq_const %r#6, dense<[10, 11]> : tensor<2xi32>
    check.expect_eq_const %r#10, dense<[12, 13]> : tensor<2xi32>
    check.expect_eq_const %r#7, dense<[10, 11]> : tensor<2xi32>
    check.expect_eq_const %r#11, dense<[12, 13]> : tensor<2xi32>
    return
  }
}
