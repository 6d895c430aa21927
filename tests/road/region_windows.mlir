// Windows, scatter and convolution over small tensors inside a region: padding and holes, ties, updates that fall outside,
// groups. Every lane has its own data.
// run: otrn eval %s
// run: otrn run %s --disable-pass=fold
func.func private @pool(%n: tensor<5xi32>) -> tensor<5xi32> {
  %r = "stablehlo.map"(%n) <{dimensions = array<i64: 0>}> ({
  ^bb0(%x: tensor<i32>):
    %i = stablehlo.iota dim = 0 : tensor<6xi32>
    %b = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %v = stablehlo.multiply %i, %b : tensor<6xi32>
    %c = stablehlo.constant dense<7> : tensor<6xi32>
    %t = stablehlo.and %v, %c : tensor<6xi32>
    %s = stablehlo.reshape %t : (tensor<6xi32>) -> tensor<2x3xi32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %w = "stablehlo.reduce_window"(%s, %one) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 2>, base_dilations = array<i64: 2, 1>, window_dilations = array<i64: 1, 2>, padding = dense<[[1, 0], [1, 1]]> : tensor<2x2xi64>}> ({
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %u = stablehlo.add %p, %p : tensor<i32>
      %z = stablehlo.subtract %u, %q : tensor<i32>
      stablehlo.return %z : tensor<i32>
    }) : (tensor<2x3xi32>, tensor<i32>) -> tensor<3x2xi32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %out = stablehlo.reduce(%w init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<3x2xi32>, tensor<i32>) -> tensor<i32>
    stablehlo.return %out : tensor<i32>
  }) : (tensor<5xi32>) -> tensor<5xi32>
  return %r : tensor<5xi32>
}
func.func private @choose(%n: tensor<5xi32>) -> tensor<5xi32> {
  %r = "stablehlo.map"(%n) <{dimensions = array<i64: 0>}> ({
  ^bb0(%x: tensor<i32>):
    %i = stablehlo.constant dense<[3, 1, 4, 1, 5, 9, 2]> : tensor<7xi32>
    %b = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<i32>) -> tensor<7xi32>
    %m = stablehlo.multiply %i, %b : tensor<7xi32>
    %seven = stablehlo.constant dense<7> : tensor<7xi32>
    %t = stablehlo.and %m, %seven : tensor<7xi32>
    %source = stablehlo.constant dense<[1, 10, 100, 1000]> : tensor<4xi32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %g = "stablehlo.select_and_scatter"(%t, %source, %zero) <{window_dimensions = array<i64: 3>, window_strides = array<i64: 2>, padding = dense<[[1, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %ge = stablehlo.compare GE, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %ge : tensor<i1>
    }, {
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %z = stablehlo.add %p, %q : tensor<i32>
      stablehlo.return %z : tensor<i32>
    }) : (tensor<7xi32>, tensor<4xi32>, tensor<i32>) -> tensor<7xi32>
    %place = stablehlo.iota dim = 0 : tensor<7xi32>
    %h = stablehlo.multiply %g, %place : tensor<7xi32>
    %out = stablehlo.reduce(%h init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<7xi32>, tensor<i32>) -> tensor<i32>
    stablehlo.return %out : tensor<i32>
  }) : (tensor<5xi32>) -> tensor<5xi32>
  return %r : tensor<5xi32>
}
// Indices from -2 to 5 into 4 x 3: rows of two, some half outside on either side.
func.func private @scatter(%n: tensor<5xi32>) -> tensor<5xi32> {
  %r = "stablehlo.map"(%n) <{dimensions = array<i64: 0>}> ({
  ^bb0(%x: tensor<i32>):
    %in = stablehlo.constant dense<[[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]> : tensor<4x3xi32>
    %y = stablehlo.convert %x : (tensor<i32>) -> tensor<i8>
    %one = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<i8>) -> tensor<3x2xi8>
    %d = stablehlo.constant dense<[[0, 0], [-1, -2], [-1, 0]]> : tensor<3x2xi8>
    %index = stablehlo.add %one, %d : tensor<3x2xi8>
    %updates = stablehlo.constant dense<[[20, 21], [31, 30], [42, 43]]> : tensor<3x2xi32>
    %s = "stablehlo.scatter"(%in, %index, %updates) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %two = stablehlo.constant dense<2> : tensor<i32>
      %a = stablehlo.multiply %p, %two : tensor<i32>
      %b = stablehlo.add %a, %q : tensor<i32>
      stablehlo.return %b : tensor<i32>
    }) : (tensor<4x3xi32>, tensor<3x2xi8>, tensor<3x2xi32>) -> tensor<4x3xi32>
    %place = stablehlo.iota dim = 0 : tensor<12xi32>
    %flat = stablehlo.reshape %s : (tensor<4x3xi32>) -> tensor<12xi32>
    %h = stablehlo.multiply %flat, %place : tensor<12xi32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %out = stablehlo.reduce(%h init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<12xi32>, tensor<i32>) -> tensor<i32>
    stablehlo.return %out : tensor<i32>
  }) : (tensor<5xi32>) -> tensor<5xi32>
  return %r : tensor<5xi32>
}
func.func private @conv(%n: tensor<5xf32>) -> tensor<5xf32> {
  %r = "stablehlo.map"(%n) <{dimensions = array<i64: 0>}> ({
  ^bb0(%x: tensor<f32>):
    %i = stablehlo.iota dim = 1 : tensor<2x4x3xf32>
    %j = stablehlo.iota dim = 2 : tensor<2x4x3xf32>
    %ij = stablehlo.multiply %i, %j : tensor<2x4x3xf32>
    %b = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<2x4x3xf32>
    %in = stablehlo.add %ij, %b : tensor<2x4x3xf32>
    %kernel = stablehlo.constant dense<[[[1.0, 2.0, -1.0, 3.0]], [[0.5, -2.0, 4.0, 1.0]]]> : tensor<2x1x4xf32>
    %half = stablehlo.slice %in [0:2, 0:4, 0:2] : (tensor<2x4x3xf32>) -> tensor<2x4x2xf32>
    %c = "stablehlo.convolution"(%half, %kernel) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[f, b, 0]>, feature_group_count = 2 : i64, lhs_dilation = array<i64: 2>, rhs_dilation = array<i64: 3>, padding = dense<[[2, 1]]> : tensor<1x2xi64>, window_strides = array<i64: 2>, window_reversal = array<i1: true>}> : (tensor<2x4x2xf32>, tensor<2x1x4xf32>) -> tensor<4x2x4xf32>
    %place = stablehlo.iota dim = 0 : tensor<32xf32>
    %flat = stablehlo.reshape %c : (tensor<4x2x4xf32>) -> tensor<32xf32>
    %h = stablehlo.multiply %flat, %place : tensor<32xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %out = stablehlo.reduce(%h init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<32xf32>, tensor<f32>) -> tensor<f32>
    stablehlo.return %out : tensor<f32>
  }) : (tensor<5xf32>) -> tensor<5xf32>
  return %r : tensor<5xf32>
}
func.func public @main() {
  %n = stablehlo.constant dense<[0, 1, 2, 3, 5]> : tensor<5xi32>
  %f = stablehlo.convert %n : (tensor<5xi32>) -> tensor<5xf32>
  %p = func.call @pool(%n) : (tensor<5xi32>) -> tensor<5xi32>
  %c = func.call @choose(%n) : (tensor<5xi32>) -> tensor<5xi32>
  %s = func.call @scatter(%n) : (tensor<5xi32>) -> tensor<5xi32>
  %v = func.call @conv(%f) : (tensor<5xf32>) -> tensor<5xf32>
  check.expect_eq_const %p, dense<[24, -3, -6, -33, -63]> : tensor<5xi32>
  check.expect_eq_const %c, dense<[5310, 6420, 6310, 6421, 5310]> : tensor<5xi32>
  check.expect_eq_const %s, dense<[595, 943, 1289, 1157, 572]> : tensor<5xi32>
  check.expect_eq_const %v, dense<[668, 1184, 1700, 2216, 3248]> : tensor<5xf32>
  return
}
