// The order of a sum is a tree over the group's positions: ((0 1) (2 3)) (4 5) of six. From left to right the results would be 10 and 7.
// run: otrn eval %s
// run: otrn run --cache=off %s
// expect: result 0: tensor<2xf32>
module @tree {
  func.func @sum(%a: tensor<2xf32>) -> tensor<2xf32> {
    %r = "stablehlo.all_reduce"(%a) ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1, 2, 3, 4, 5]]> : tensor<1x6xi64>} : (tensor<2xf32>) -> tensor<2xf32>
    return %r : tensor<2xf32>
  }
  func.func @main() -> tensor<2xf32> {
    %a0 = stablehlo.constant dense<[1.0e+08, 1.0]> : tensor<2xf32>
    %a1 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %a2 = stablehlo.constant dense<[-1.0e+08, 1.0e+08]> : tensor<2xf32>
    %a3 = stablehlo.constant dense<[1.0, -1.0e+08]> : tensor<2xf32>
    %a4 = stablehlo.constant dense<[4.0, 3.0]> : tensor<2xf32>
    %a5 = stablehlo.constant dense<[5.0, 4.0]> : tensor<2xf32>
    %r:6 = "interpreter.run_parallel"(%a0, %a1, %a2, %a3, %a4, %a5) {programs = [[@sum], [@sum], [@sum], [@sum], [@sum], [@sum]]}
      : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
      -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
    check.expect_eq_const %r#0, dense<[9.0, 10.0]> : tensor<2xf32>
    check.expect_eq %r#0, %r#5 : tensor<2xf32>
    return %r#0 : tensor<2xf32>
  }
}
