// Shardy's own forms, as JAX prints them. What is printed is read back and prints the same.
// run: otrn compile %s --dump=read -o %t/out.otrn >%t/a.mlir
// run: otrn compile %t/a.mlir --dump=read -o %t/out.otrn >%t/b.mlir
// run: cmp %t/a.mlir %t/b.mlir && cat %t/a.mlir
// expect: sdy.mesh @mesh = <["x"=4, "y"=2]>
// expect: "sdy.manual_computation"(%arg0, %arg1) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>, <@mesh, [{"y"}, {}]>]>, manual_axes = #sdy<manual_axes{"x", "y"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}> ({
// expect: ^bb0(%arg2: tensor<2x4xf32>, %arg3: tensor<4x4xf32>):
// expect: sdy.return %1 : tensor<2x4xf32>
// expect: "sdy.sharding_group"(%0) <{group_id = 3 : i64}>
// expect: "sdy.propagation_barrier"(%0) <{allowed_direction = 0 : i32}>
// expect: "sdy.sharding_constraint"(%2) <{sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}>
// expect: "sdy.reshard"(%3) <{sharding = #sdy.sharding<@mesh, [{}, {}]>}>
// expect: name = "f"
// expect: #sdy.sharding<@mesh, [{}, {"y", ?}p1], replicated={"x":(1)2}, unreduced={"x":(2)2}>
// expect: manual_axes = #sdy<manual_axes{}>
module @shardy attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 4 : i64}, {name = "y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<8x8xf32>, %arg1: tensor<8x4xf32>) -> (tensor<8x4xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"x"}, {"y"}]>, <@mesh, [{"y"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x", "y"} (%arg2: tensor<2x4xf32>, %arg3: tensor<4x4xf32>) {
      %6 = stablehlo.dot_general %arg2, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
      sdy.return %6 : tensor<2x4xf32>
    } : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    sdy.sharding_group %0 group_id=3 : tensor<8x4xf32>
    %1 = sdy.propagation_barrier %0 allowed_direction=NONE : tensor<8x4xf32>
    %2 = sdy.sharding_constraint %1 <@mesh, [{"x"}, {}]> : tensor<8x4xf32>
    %3 = sdy.all_gather [{"x"}, {}] %2 out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>
    %4 = sdy.named_computation<"f">(%3) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] (%arg2: tensor<8x4xf32>) {
      %6 = stablehlo.sine %arg2 : tensor<8x4xf32>
      sdy.return %6 : tensor<8x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %5 = sdy.reshard %4 <@mesh, [{}, {"y", ?}p1], replicated={"x":(1)2}, unreduced={"x":(2)2}> : tensor<8x4xf32>
    %7:2 = sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, []>, <@mesh, []>] manual_axes={} () {
      %8 = stablehlo.constant dense<1> : tensor<i32>
      sdy.return %8, %8 : tensor<i32>, tensor<i32>
    } : () -> (tensor<i32>, tensor<i32>)
    %9 = "sdy.all_slice"(%5) <{out_sharding = #sdy.sharding<@mesh, [{"x"}, {}]>, slicing_axes = #sdy<list_of_axis_ref_lists[{"x"}, {}]>}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %9 : tensor<8x4xf32>
  }
}
