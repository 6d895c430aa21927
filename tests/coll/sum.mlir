// Sums over ragged groups, of two operands, in a wider type than theirs: the evaluator and the chip agree.
// run: otrn eval %s
// run: otrn run --cache=off %s
// expect: result 0: tensor<3xf32>
module @sums {
  func.func @sum(%a: tensor<3xbf16>, %b: tensor<2x2xbf16>) -> (tensor<3xf32>, tensor<2x2xf32>) {
    %r:2 = "stablehlo.all_reduce"(%a, %b) ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 2], [1, -1]]> : tensor<2x2xi64>}
      : (tensor<3xbf16>, tensor<2x2xbf16>) -> (tensor<3xf32>, tensor<2x2xf32>)
    return %r#0, %r#1 : tensor<3xf32>, tensor<2x2xf32>
  }
  func.func @main() -> tensor<3xf32> {
    %a0 = stablehlo.constant dense<[256.0, 1.0, -1.0]> : tensor<3xbf16>
    %a1 = stablehlo.constant dense<[2.0, 2.0, 2.0]> : tensor<3xbf16>
    %a2 = stablehlo.constant dense<[1.0, 4.0, 8.0]> : tensor<3xbf16>
    %b0 = stablehlo.constant dense<1.5> : tensor<2x2xbf16>
    %b1 = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xbf16>
    %r:6 = "interpreter.run_parallel"(%a0, %b0, %a1, %b1, %a2, %b1) {programs = [[@sum], [@sum], [@sum]]}
      : (tensor<3xbf16>, tensor<2x2xbf16>, tensor<3xbf16>, tensor<2x2xbf16>, tensor<3xbf16>, tensor<2x2xbf16>)
      -> (tensor<3xf32>, tensor<2x2xf32>, tensor<3xf32>, tensor<2x2xf32>, tensor<3xf32>, tensor<2x2xf32>)
    check.expect_eq_const %r#0, dense<[257.0, 5.0, 7.0]> : tensor<3xf32>
    check.expect_eq_const %r#1, dense<[[2.5, 3.5], [4.5, 5.5]]> : tensor<2x2xf32>
    check.expect_eq_const %r#2, dense<2.0> : tensor<3xf32>
    check.expect_eq_const %r#3, dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
    check.expect_eq %r#0, %r#4 : tensor<3xf32>
    return %r#4 : tensor<3xf32>
  }
}
