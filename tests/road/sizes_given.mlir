// Padding, slice bounds and slice sizes that are known only when the program runs, into results of known
// shape. The loop hides the numbers from the compiler.
// run: otrn eval %s
// run: otrn run %s --disable-pass=fold
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %r:2 = stablehlo.while(%i = %zero, %n = %zero) : tensor<i64>, tensor<i64>
   cond {
    %three = stablehlo.constant dense<3> : tensor<i64>
    %p = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i64>
    %j = stablehlo.add %i, %one : tensor<i64>
    stablehlo.return %j, %i : tensor<i64>, tensor<i64>
  }
  %two = stablehlo.reshape %r#1 : (tensor<i64>) -> tensor<1xi64>
  %one = stablehlo.constant dense<1> : tensor<1xi64>
  %x = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %fill = stablehlo.constant dense<9.0> : tensor<f32>
  %pad = stablehlo.dynamic_pad %x, %fill, %two, %one, %one : (tensor<3xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<8xf32>
  check.expect_eq_const %pad, dense<[9.0, 9.0, 1.0, 9.0, 2.0, 9.0, 3.0, 9.0]> : tensor<8xf32>

  %end = stablehlo.constant dense<7> : tensor<1xi64>
  %slice = stablehlo.real_dynamic_slice %pad, %two, %end, %two : (tensor<8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<3xf32>
  check.expect_eq_const %slice, dense<[1.0, 2.0, 3.0]> : tensor<3xf32>

  %at = stablehlo.constant dense<[[0], [5]]> : tensor<2x1xi64>
  %gather = "stablehlo.dynamic_gather"(%x, %at, %two) {dimension_numbers = #stablehlo.gather<offset_dims = [1], start_index_map = [0], index_vector_dim = 1>} : (tensor<3xf32>, tensor<2x1xi64>, tensor<1xi64>) -> tensor<2x2xf32>
  check.expect_eq_const %gather, dense<[[1.0, 2.0], [2.0, 3.0]]> : tensor<2x2xf32>

  %image = stablehlo.reshape %x : (tensor<3xf32>) -> tensor<1x3x1xf32>
  %kernel = stablehlo.constant dense<1.0> : tensor<2x1x1xf32>
  %edge = stablehlo.concatenate %two, %one, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %edges = stablehlo.reshape %edge : (tensor<2xi64>) -> tensor<1x2xi64>
  %conv = "stablehlo.dynamic_conv"(%image, %kernel, %edges) {batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64} : (tensor<1x3x1xf32>, tensor<2x1x1xf32>, tensor<1x2xi64>) -> tensor<1x5x1xf32>
  %row = stablehlo.reshape %conv : (tensor<1x5x1xf32>) -> tensor<5xf32>
  check.expect_eq_const %row, dense<[0.0, 1.0, 3.0, 5.0, 3.0]> : tensor<5xf32>
  return
}
