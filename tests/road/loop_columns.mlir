// A column at the counter is no run of bytes: a product that reads or makes one does not take it for a view.
// run: otrn eval %s && otrn run %s
// expect-not: FAIL
func.func @main() {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %o = stablehlo.constant dense<1> : tensor<i32>
  %half = stablehlo.constant dense<0.5> : tensor<3x3xf32>
  %i0 = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]> : tensor<3x3xf32>
  %a = stablehlo.optimization_barrier %i0 : tensor<3x3xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<3x3xf32>
  // x := column by column a x
  %r:2 = stablehlo.while(%i = %z, %x = %a) : tensor<i32>, tensor<3x3xf32>
    cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1> }
    do { %j = stablehlo.add %i, %o : tensor<i32>
      %s = stablehlo.dynamic_slice %a, %z, %i, sizes = [3, 1] : (tensor<3x3xf32>, tensor<i32>, tensor<i32>) -> tensor<3x1xf32>
      %v = stablehlo.reshape %s : (tensor<3x1xf32>) -> tensor<3xf32>
      %d = stablehlo.dot_general %a, %v, contracting_dims = [1] x [0] : (tensor<3x3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %w = stablehlo.reshape %d : (tensor<3xf32>) -> tensor<3x1xf32>
      %u = stablehlo.dynamic_update_slice %x, %w, %z, %i : (tensor<3x3xf32>, tensor<3x1xf32>, tensor<i32>, tensor<i32>) -> tensor<3x3xf32>
      stablehlo.return %j, %u : tensor<i32>, tensor<3x3xf32> }
  check.expect_almost_eq_const %r#1, dense<[[30.0, 36.0, 42.0], [66.0, 81.0, 96.0], [102.0, 126.0, 150.0]]> : tensor<3x3xf32>
  // rows are runs: x := a^T a, row by row
  %q:2 = stablehlo.while(%i = %z, %x = %zero) : tensor<i32>, tensor<3x3xf32>
    cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1> }
    do { %j = stablehlo.add %i, %o : tensor<i32>
      %s = stablehlo.dynamic_slice %a, %i, %z, sizes = [1, 3] : (tensor<3x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
      %d = stablehlo.dot_general %s, %a, contracting_dims = [1] x [0] : (tensor<1x3xf32>, tensor<3x3xf32>) -> tensor<1x3xf32>
      %u = stablehlo.dynamic_update_slice %x, %d, %i, %z : (tensor<3x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<3x3xf32>
      stablehlo.return %j, %u : tensor<i32>, tensor<3x3xf32> }
  check.expect_almost_eq_const %q#1, dense<[[30.0, 36.0, 42.0], [66.0, 81.0, 96.0], [102.0, 126.0, 150.0]]> : tensor<3x3xf32>
  return
}
