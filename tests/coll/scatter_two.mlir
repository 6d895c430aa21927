// A reduce_scatter of two operands, as collectives are joined: the evaluator and the chip agree.
// run: otrn eval %s
// run: otrn run --cache=off %s
// expect: result 0: tensor<1x2xf32>
module @scatters {
  func.func @sum(%a: tensor<2x2xf32>, %b: tensor<4xf32>) -> (tensor<1x2xf32>, tensor<2xf32>) {
    %r:2 = "stablehlo.reduce_scatter"(%a, %b) ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) {scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
      : (tensor<2x2xf32>, tensor<4xf32>) -> (tensor<1x2xf32>, tensor<2xf32>)
    return %r#0, %r#1 : tensor<1x2xf32>, tensor<2xf32>
  }
  func.func @main() -> tensor<1x2xf32> {
    %a0 = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
    %a1 = stablehlo.constant dense<[[10.0, 20.0], [30.0, 40.0]]> : tensor<2x2xf32>
    %b0 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %r:4 = "interpreter.run_parallel"(%a0, %b0, %a1, %b0) {programs = [[@sum], [@sum]]}
      : (tensor<2x2xf32>, tensor<4xf32>, tensor<2x2xf32>, tensor<4xf32>)
      -> (tensor<1x2xf32>, tensor<2xf32>, tensor<1x2xf32>, tensor<2xf32>)
    check.expect_eq_const %r#0, dense<[[11.0, 22.0]]> : tensor<1x2xf32>
    check.expect_eq_const %r#1, dense<[2.0, 4.0]> : tensor<2xf32>
    check.expect_eq_const %r#2, dense<[[33.0, 44.0]]> : tensor<1x2xf32>
    check.expect_eq_const %r#3, dense<[6.0, 8.0]> : tensor<2xf32>
    return %r#2 : tensor<1x2xf32>
  }
}
