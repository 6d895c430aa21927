// chlo ops that are written with common ones: scan both ways, with several inputs and a value from outside;
// ragged products over rows, over the contracted dimension, over batches; broadcasting ops; constants.
// run: otrn eval %s
// run: otrn run %s --disable-pass=fold
func.func private @sums(%x: tensor<2x4xi32>, %scale: tensor<2xi32>) -> (tensor<2x4xi32>, tensor<2xi32>) {
  %z = stablehlo.constant dense<[10, 0]> : tensor<2xi32>
  %r:2 = chlo.scan(%x) inits (%z) dimension=1  attributes {is_reverse = false} {
  ^bb0(%input: tensor<2xi32>, %carry: tensor<2xi32>):
    %s = stablehlo.multiply %input, %scale : tensor<2xi32>
    %t = stablehlo.add %s, %carry : tensor<2xi32>
    stablehlo.return %t, %t : tensor<2xi32>, tensor<2xi32>
  } : (tensor<2x4xi32>, tensor<2xi32>) -> (tensor<2x4xi32>, tensor<2xi32>)
  return %r#0, %r#1 : tensor<2x4xi32>, tensor<2xi32>
}
func.func private @backwards(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<3xf32>, tensor<f32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r:2 = "chlo.scan"(%x, %y, %z) <{dimension = 0 : i64, is_reverse = true, operandSegmentSizes = array<i32: 2, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>):
    %p = stablehlo.multiply %a, %b : tensor<f32>
    %s = stablehlo.add %p, %c : tensor<f32>
    stablehlo.return %c, %s : tensor<f32>, tensor<f32>
  }) : (tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> (tensor<3xf32>, tensor<f32>)
  return %r#0, %r#1 : tensor<3xf32>, tensor<f32>
}
func.func public @main() {
  %x = stablehlo.constant dense<[[1, 2, 3, 4], [5, 6, 7, 8]]> : tensor<2x4xi32>
  %scale = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %s:2 = func.call @sums(%x, %scale) : (tensor<2x4xi32>, tensor<2xi32>) -> (tensor<2x4xi32>, tensor<2xi32>)
  check.expect_eq_const %s#0, dense<[[11, 13, 16, 20], [10, 22, 36, 52]]> : tensor<2x4xi32>
  check.expect_eq_const %s#1, dense<[20, 52]> : tensor<2xi32>
  %a = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %b = stablehlo.constant dense<[4.0, 5.0, 6.0]> : tensor<3xf32>
  %t:2 = func.call @backwards(%a, %b) : (tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<f32>)
  check.expect_eq_const %t#0, dense<[28.0, 18.0, 0.0]> : tensor<3xf32>
  check.expect_eq_const %t#1, dense<32.0> : tensor<f32>

  // rows 0 and 1 meet the first matrix, row 2 the second, row 3 belongs to no group
  %l = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]> : tensor<4x2xf32>
  %w = stablehlo.constant dense<[[[1.0], [10.0]], [[100.0], [1000.0]]]> : tensor<2x2x1xf32>
  %g = stablehlo.constant dense<[2, 1]> : tensor<2xi64>
  %m1 = "chlo.ragged_dot"(%l, %w, %g) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>],
    ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1],
    lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<4x2xf32>, tensor<2x2x1xf32>, tensor<2xi64>) -> tensor<4x1xf32>
  check.expect_eq_const %m1, dense<[[21.0], [43.0], [6500.0], [0.0]]> : tensor<4x1xf32>
  // the contracted dimension falls into groups: a product for each
  %r = stablehlo.constant dense<[[1.0], [10.0], [100.0], [1000.0]]> : tensor<4x1xf32>
  %m2 = "chlo.ragged_dot"(%l, %r, %g) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [0],
    rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [0]>}> : (tensor<4x2xf32>, tensor<4x1xf32>, tensor<2xi64>) -> tensor<2x2x1xf32>
  check.expect_eq_const %m2, dense<[[[31.0], [42.0]], [[500.0], [600.0]]]> : tensor<2x2x1xf32>
  // the same in two batches of their own group sizes
  %lb = stablehlo.constant dense<[[[1.0, 2.0]], [[3.0, 4.0]]]> : tensor<2x1x2xf32>
  %rb = stablehlo.constant dense<[[[1.0], [10.0]], [[100.0], [1000.0]]]> : tensor<2x2x1xf32>
  %gb = stablehlo.constant dense<[[1, 1], [2, 0]]> : tensor<2x2xi32>
  %m3 = "chlo.ragged_dot"(%lb, %rb, %gb) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [0],
    rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1],
    lhs_ragged_dimensions = [2]>}> : (tensor<2x1x2xf32>, tensor<2x2x1xf32>, tensor<2x2xi32>) -> tensor<2x2x1x1xf32>
  check.expect_eq_const %m3, dense<[[[[1.0]], [[4300.0]]], [[[20.0]], [[0.0]]]]> : tensor<2x2x1x1xf32>
  // groups of batches
  %g1 = stablehlo.constant dense<[1, 1]> : tensor<2xi32>
  %m4 = "chlo.ragged_dot"(%lb, %rb, %g1) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [0],
    rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1],
    lhs_ragged_dimensions = [0]>}> : (tensor<2x1x2xf32>, tensor<2x2x1xf32>, tensor<2xi32>) -> tensor<2x1x1xf32>
  check.expect_eq_const %m4, dense<[[[21.0]], [[4300.0]]]> : tensor<2x1x1xf32>

  %row = chlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %other = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  check.expect_eq %row, %other : tensor<4xi32>, tensor<4xi32>
  %b1 = chlo.broadcast_add %x, %row : (tensor<2x4xi32>, tensor<4xi32>) -> tensor<2x4xi32>
  check.expect_eq_const %b1, dense<[[2, 4, 6, 8], [6, 8, 10, 12]]> : tensor<2x4xi32>
  %b2 = chlo.broadcast_multiply %scale, %x {broadcast_dimensions = array<i64: 0>} : (tensor<2xi32>, tensor<2x4xi32>) -> tensor<2x4xi32>
  check.expect_eq_const %b2, dense<[[1, 2, 3, 4], [10, 12, 14, 16]]> : tensor<2x4xi32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %b3 = chlo.broadcast_compare %x, %three {comparison_direction = #chlo<comparison_direction GT>} : (tensor<2x4xi32>, tensor<i32>) -> tensor<2x4xi1>
  %b4 = chlo.broadcast_select %b3, %x, %three : (tensor<2x4xi1>, tensor<2x4xi32>, tensor<i32>) -> tensor<2x4xi32>
  check.expect_eq_const %b4, dense<[[3, 3, 3, 4], [5, 6, 7, 8]]> : tensor<2x4xi32>
  return
}
