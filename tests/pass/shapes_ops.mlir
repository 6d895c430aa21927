// Every op that takes a shape as data, the shapes computed by the program from sizes that are known.
// run: otrn eval %s
// run: otrn run %s
// run: otrn compile %s --dump=shapes -o %t/out.otrn
// expect-not: dynamic_
// expect-not: get_dimension_size
// expect-not: ?
func.func private @shape_of(%x: tensor<?x?xf32>) -> tensor<2xi32> {
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
  %1 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
  %2 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
  %3 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
  %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  return %4 : tensor<2xi32>
}
func.func public @main() {
  %c = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %32 = stablehlo.constant dense<[3, 2]> : tensor<2xi32>
  %x = stablehlo.dynamic_reshape %c, %32 : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %s = func.call @shape_of(%x) : (tensor<?x?xf32>) -> tensor<2xi32>
  check.expect_eq_const %s, dense<[3, 2]> : tensor<2xi32>

  %unit = stablehlo.constant dense<1> : tensor<i32>
  %count = stablehlo.reduce(%s init: %unit) applies stablehlo.multiply across dimensions = [0] : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
  %all = stablehlo.reshape %count : (tensor<i32>) -> tensor<1xi32>
  %flat = stablehlo.dynamic_reshape %x, %all : (tensor<?x?xf32>, tensor<1xi32>) -> tensor<?xf32>
  %row = stablehlo.concatenate %flat, %flat, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<12xf32>
  check.expect_eq_const %row, dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<12xf32>

  %b = stablehlo.dynamic_broadcast_in_dim %zero, %s, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x?xf32>
  %i = stablehlo.dynamic_iota %s, dim = 0 : (tensor<2xi32>) -> tensor<?x?xf32>
  %0 = stablehlo.add %x, %b : tensor<?x?xf32>
  %1 = stablehlo.add %0, %i : tensor<?x?xf32>
  %2 = stablehlo.slice %1 [0:3, 0:2] : (tensor<?x?xf32>) -> tensor<3x2xf32>
  check.expect_eq_const %2, dense<[[1.0, 2.0], [4.0, 5.0], [7.0, 8.0]]> : tensor<3x2xf32>

  %none = stablehlo.constant dense<0> : tensor<2xi32>
  %one = stablehlo.constant dense<1> : tensor<2xi32>
  %3 = stablehlo.dynamic_pad %x, %zero, %one, %none, %none : (tensor<?x?xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  %4 = stablehlo.real_dynamic_slice %3, %one, %s, %one : (tensor<?x?xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  %5 = stablehlo.reshape %4 : (tensor<?x?xf32>) -> tensor<2x1xf32>
  check.expect_eq_const %5, dense<[[1.0], [3.0]]> : tensor<2x1xf32>

  %at = stablehlo.constant dense<[2, 0]> : tensor<2xi32>
  %sizes = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %6 = "stablehlo.dynamic_gather"(%x, %at, %sizes) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<?x?xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x?xf32>
  %7 = stablehlo.reshape %6 : (tensor<2x?xf32>) -> tensor<2x2xf32>
  check.expect_eq_const %7, dense<[[5.0, 6.0], [1.0, 2.0]]> : tensor<2x2xf32>

  %wide = stablehlo.constant dense<[1, 3, 2]> : tensor<3xi32>
  %image = stablehlo.dynamic_reshape %x, %wide : (tensor<?x?xf32>, tensor<3xi32>) -> tensor<1x?x?xf32>
  %kernel = stablehlo.constant dense<1.0> : tensor<2x2x1xf32>
  %edge = stablehlo.constant dense<[[1, 0]]> : tensor<1x2xi32>
  %8 = "stablehlo.dynamic_conv"(%image, %kernel, %edge) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64}> : (tensor<1x?x?xf32>, tensor<2x2x1xf32>, tensor<1x2xi32>) -> tensor<1x?x1xf32>
  %9 = stablehlo.reshape %8 : (tensor<1x?x1xf32>) -> tensor<3xf32>
  check.expect_eq_const %9, dense<[3.0, 10.0, 18.0]> : tensor<3xf32>

  %n = stablehlo.constant dense<2> : tensor<i32>
  %10 = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<?x?xf32>, tensor<i32>) -> tensor<?x?xf32>
  %11 = stablehlo.dot_general %10, %x, contracting_dims = [1] x [1] : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %12 = stablehlo.reshape %11 : (tensor<?x?xf32>) -> tensor<2x3xf32>
  check.expect_eq_const %12, dense<[[5.0, 11.0, 17.0], [11.0, 25.0, 39.0]]> : tensor<2x3xf32>

  // more strides than spatial dimensions, as JAX wrote them once
  %long = stablehlo.constant dense<[[[1.0], [2.0], [3.0], [4.0]]]> : tensor<1x4x1xf32>
  %shape3 = stablehlo.constant dense<[1, 4, 1]> : tensor<3xi32>
  %open = stablehlo.dynamic_reshape %long, %shape3 : (tensor<1x4x1xf32>, tensor<3xi32>) -> tensor<1x?x1xf32>
  %taps = stablehlo.constant dense<[[[1.0]], [[10.0]]]> : tensor<2x1x1xf32>
  %edges = stablehlo.constant dense<[[0, 0]]> : tensor<1x2xi32>
  %thin = "stablehlo.dynamic_conv"(%open, %taps, %edges) {batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 1 : i64, window_strides = array<i64: 2, 2>} : (tensor<1x?x1xf32>, tensor<2x1x1xf32>, tensor<1x2xi32>) -> tensor<1x?x1xf32>
  %thin_flat = stablehlo.reshape %thin : (tensor<1x?x1xf32>) -> tensor<2xf32>
  check.expect_eq_const %thin_flat, dense<[21.0, 43.0]> : tensor<2xf32>
  return
}
