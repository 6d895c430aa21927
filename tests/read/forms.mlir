// Every pretty form that is not a region's. What is printed is read back and prints the same.
// run: otrn compile %s --dump=read -o %t/out.otrn >%t/a.mlir 2>%t/errors; ! grep PARSE %t/errors
// run: otrn compile %t/a.mlir --dump=read -o %t/out.otrn >%t/b.mlir 2>%t/errors; ! grep PARSE %t/errors
// run: test -s %t/a.mlir && cmp %t/a.mlir %t/b.mlir && cat %t/a.mlir
// expect: stablehlo.add %arg0, %arg1 : tensor<2x3xf32>
// expect: comparison_direction = #stablehlo<comparison_direction LT>
// expect: compare_type = #stablehlo<comparison_type TOTALORDER>
// expect: limit_indices = array<i64: 2, 3>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 2>
// expect: algorithm = #stablehlo.dot_algorithm<lhs_precision_type = tf32
// expect: padding = dense<[[1, 1], [0, 2]]> : tensor<2x2xi64>
// expect: backend_config = {flag = true, n = 3 : i32}
module @forms attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @elementwise(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>, %p: tensor<2x3xi1>,
                                %s: tensor<i1>, %x: tensor<2x3xi32>) -> (tensor<2x3xf32>) {
    %0 = stablehlo.add %a, %b : tensor<2x3xf32>
    %1 = stablehlo.add %a, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %2 = stablehlo.exponential %0 {some.note = "kept"} : tensor<2x3xf32>
    %3 = stablehlo.compare  LT, %a, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %4 = stablehlo.compare GE, %a, %b,  TOTALORDER : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %5 = stablehlo.select %3, %a, %b : tensor<2x3xi1>, tensor<2x3xf32>
    %6 = stablehlo.select %s, %a, %b : (tensor<i1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %7 = stablehlo.clamp %a, %b, %5 : tensor<2x3xf32>
    %8 = stablehlo.convert %x : (tensor<2x3xi32>) -> tensor<2x3xf32>
    %9 = stablehlo.convert %a : tensor<2x3xf32>
    %10 = stablehlo.is_finite %a : (tensor<2x3xf32>) -> tensor<2x3xi1>
    %11 = stablehlo.complex %a, %b : tensor<2x3xcomplex<f32>>
    %12 = stablehlo.real %11 : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    %13 = stablehlo.reduce_precision %a, format = e5m10 : tensor<2x3xf32>
    %14 = chlo.erf %a : tensor<2x3xf32> -> tensor<2x3xf32>
    %15:2 = stablehlo.optimization_barrier %a, %x : tensor<2x3xf32>, tensor<2x3xi32>
    return %7 : tensor<2x3xf32>
  }
  func.func private @shape(%a: tensor<2x3xf32>, %i: tensor<i32>, %z: tensor<f32>) -> tensor<3x2xf32> {
    %0 = stablehlo.iota dim = 1 : tensor<2x3xi32>
    %1 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %2 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %3 = stablehlo.reverse %a, dims = [0] : tensor<2x3xf32>
    %4 = stablehlo.slice %a [0:2, 1:3:2] : (tensor<2x3xf32>) -> tensor<2x1xf32>
    %5 = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 2] : (tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
    %6 = stablehlo.dynamic_update_slice %a, %5, %i, %i : (tensor<2x3xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
    %7 = stablehlo.pad %a, %z, low = [0, 1], high = [0, -1], interior = [1, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3x3xf32>
    %8 = stablehlo.concatenate %a, %3, dim = 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    %9 = stablehlo.reshape %a : (tensor<2x3xf32>) -> tensor<6xf32>
    %10 = stablehlo.bitcast_convert %a : (tensor<2x3xf32>) -> tensor<2x3xi32>
    %11 = stablehlo.get_dimension_size %a, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>
    %12, %13 = chlo.top_k(%a, k = 2) : tensor<2x3xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>)
    %14 = stablehlo.broadcast %z, sizes = [2] : (tensor<f32>) -> tensor<2xf32>
    return %2 : tensor<3x2xf32>
  }
  func.func private @products(%a: tensor<4x2x3xf32>, %b: tensor<4x3x5xf32>, %c: tensor<1x8x8x2xf32>,
                              %k: tensor<3x3x2x4xf32>) -> tensor<4x2x5xf32> {
    %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGHEST, DEFAULT] : (tensor<4x2x3xf32>, tensor<4x3x5xf32>) -> tensor<4x2x5xf32>
    %1 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<4x2x3xf32>, tensor<4x3x5xf32>) -> tensor<4x2x5xf32>
    %2 = stablehlo.convolution(%c, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [0, 2]], reverse = [false, true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x4x8x4xf32>
    %3 = stablehlo.convolution(%c, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x6x6x4xf32>
    %4 = stablehlo.convolution(%c, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [], pad = [], lhs_dilate = [], rhs_dilate = [], reverse = []} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x6x6x4xf32>
    return %0 : tensor<4x2x5xf32>
  }
  func.func private @others(%a: tensor<4x4xf32>, %c: tensor<4xcomplex<f32>>, %s: tensor<2xui64>) -> tensor<4x4xf32> {
    %0 = stablehlo.cholesky %a, lower = true : tensor<4x4xf32>
    %1 = stablehlo.fft %c, type =  FFT, length = [4] : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
    %2, %3 = stablehlo.rng_bit_generator %s, algorithm =  THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui32>)
    %4 = stablehlo.create_token : !stablehlo.token
    %5 = stablehlo.after_all %4, %4 : !stablehlo.token
    %6 = stablehlo.tuple %a, %4 : tuple<tensor<4x4xf32>, !stablehlo.token>
    %7 = stablehlo.get_tuple_element %6[0] : (tuple<tensor<4x4xf32>, !stablehlo.token>) -> tensor<4x4xf32>
    %8 = stablehlo.custom_call @"odd name"(%a) {api_version = 4 : i32, backend_config = {n = 3 : i32, flag = true}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %9 = stablehlo.composite "my.op" %a {composite_attributes = {k = 1.5 : f32}, decomposition = @other, version = 1 : i32} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %10 = func.call @other(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %11 = stablehlo.replica_id : tensor<ui32>
    %12 = sdy.sharding_constraint %a <@mesh, [{"x"}, {}]> : tensor<4x4xf32>
    stablehlo.custom_call @check.expect_close(%a, %9) {has_side_effect = true} : (tensor<4x4xf32>, tensor<4x4xf32>) -> ()
    check.expect_eq %a, %a : tensor<4x4xf32>
    check.expect_almost_eq %a, %a, tolerance = 0.5 : tensor<4x4xf32>
    check.expect_close %a, %a, max_ulp_difference = 3, min_ulp_difference = 0 : tensor<4x4xf32>, tensor<4x4xf32>
    check.expect_almost_eq_const %a, dense<1.0> : tensor<4x4xf32> {tolerance = 0.1 : f64}
    return %10 : tensor<4x4xf32>
  }
  func.func private @other(%a: tensor<4x4xf32> {jax.arg_info = "a", tf.aliasing_output = 0 : i32}) -> (tensor<4x4xf32> {jax.result_info = "r"}) attributes {note = unit} {
    func.return %a : tensor<4x4xf32>
  }
  sdy.mesh @mesh = <["x"=2, "y"=4]>
}
