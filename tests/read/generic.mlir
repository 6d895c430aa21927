// The generic form, as mlir-opt --mlir-print-op-generic prints a whole module.
// run: otrn compile %s --dump=read -o %t/out.otrn >%t/a.mlir
// run: otrn compile %t/a.mlir --dump=read -o %t/out.otrn >%t/b.mlir
// run: test -s %t/a.mlir && cmp %t/a.mlir %t/b.mlir && cat %t/a.mlir
// expect: module @jit_f attributes {mhlo.num_replicas = 1 : i32}
// expect: func.func public @main(%arg0: tensor<4xf32> {jax.buffer_donor = true}, %arg1: tensor<i32>) -> (tensor<4xf32>)
// expect: "stablehlo.scatter"
// expect: scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true
// expect: "stablehlo.case"(%arg1) ({
// expect: "stablehlo.sort"(%arg0) <{dimension = 0 : i64, is_stable = true}>
"builtin.module"() <{sym_name = "jit_f"}> ({
  "func.func"() <{arg_attrs = [{jax.buffer_donor = true}, {}], function_type = (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>, sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<4xf32> loc("x"), %arg1: tensor<i32>):
    %0 = "stablehlo.constant"() <{value = dense<[[0], [2]]> : tensor<2x1xi32>}> : () -> tensor<2x1xi32>
    %1 = "stablehlo.constant"() {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %2 = "stablehlo.scatter"(%arg0, %0, %1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %5 = "stablehlo.add"(%arg2, %arg3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%5) : (tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<4xf32>
    %3 = "stablehlo.case"(%arg1) ({
      "stablehlo.return"(%2) : (tensor<4xf32>) -> ()
    }, {
      %4 = "func.call"(%arg0) <{callee = @g}> : (tensor<4xf32>) -> tensor<4xf32>
      "stablehlo.return"(%4) : (tensor<4xf32>) -> ()
    }) : (tensor<i32>) -> tensor<4xf32>
    "func.return"(%3) : (tensor<4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<4xf32>) -> tensor<4xf32>, sym_name = "g", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<4xf32>):
    %0 = "stablehlo.sort"(%arg0) ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %1 = "stablehlo.compare"(%arg1, %arg2) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%1) : (tensor<i1>) -> ()
    }) {dimension = 0 : i64, is_stable = true} : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%0) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_replicas = 1 : i32} : () -> ()
