// The custom calls that exporters write for ops without a dynamic form, and assertions that hold.
// run: otrn eval %s
// run: otrn run %s
// run: otrn compile %s --dump=shapes -o %t/out.otrn
// expect-not: custom_call
func.func private @max(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = func.call @larger(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @larger(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.maximum %a, %b : tensor<f32>
  return %0 : tensor<f32>
}
func.func public @main() {
  %c = stablehlo.constant dense<[3.0, 1.0, 2.0, 5.0]> : tensor<4xf32>
  %four = stablehlo.constant dense<[4]> : tensor<1xi32>
  %y = stablehlo.dynamic_reshape %c, %four : (tensor<4xf32>, tensor<1xi32>) -> tensor<?xf32>
  %x = stablehlo.custom_call @stablehlo.shape_refinement_operand_wrapper(%y, %four) {indices_of_shape_operands = dense<1> : tensor<1xi64>} : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ok = stablehlo.compare GE, %n, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%ok, %n) {api_version = 2 : i32, error_message = "size {0}", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()

  %two = stablehlo.constant dense<2> : tensor<i32>
  %k = stablehlo.divide %n, %two : tensor<i32>
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k) {api_version = 2 : i32} : (tensor<?xf32>, tensor<i32>) -> (tensor<?xf32>, tensor<?xi32>)
  %1 = stablehlo.reshape %0#0 : (tensor<?xf32>) -> tensor<2xf32>
  check.expect_eq_const %1, dense<[5.0, 3.0]> : tensor<2xf32>
  %2 = stablehlo.reshape %0#1 : (tensor<?xi32>) -> tensor<2xi32>
  check.expect_eq_const %2, dense<[3, 0]> : tensor<2xi32>

  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %window = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>
  %step = stablehlo.constant dense<1> : tensor<1xi32>
  %edge = stablehlo.constant dense<[[0, 1]]> : tensor<1x2xi32>
  %3 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %low, %window, %step, %step, %step, %edge) {api_version = 2 : i32, called_computations = [@max]} : (tensor<?xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1x2xi32>) -> tensor<?xf32>
  %4 = stablehlo.reshape %3 : (tensor<?xf32>) -> tensor<4xf32>
  check.expect_eq_const %4, dense<[3.0, 2.0, 5.0, 5.0]> : tensor<4xf32>

  %key = stablehlo.constant dense<[1, 2]> : tensor<2xui64>
  %5:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%key, %four) {api_version = 2 : i32, rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>} : (tensor<2xui64>, tensor<1xi32>) -> (tensor<2xui64>, tensor<?xui32>)
  %6, %7 = stablehlo.rng_bit_generator %key, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  %8 = stablehlo.reshape %5#1 : (tensor<?xui32>) -> tensor<4xui32>
  check.expect_eq %8, %7 : tensor<4xui32>

  // a slice of a size that is known, where it begins is data
  %at = stablehlo.optimization_barrier %step : tensor<1xi32>
  %three = stablehlo.constant dense<[3]> : tensor<1xi32>
  %to = stablehlo.add %at, %three : tensor<1xi32>
  %9 = stablehlo.real_dynamic_slice %x, %at, %to, %step : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  %10 = stablehlo.reshape %9 : (tensor<?xf32>) -> tensor<3xf32>
  check.expect_eq_const %10, dense<[1.0, 2.0, 5.0]> : tensor<3xf32>
  return
}
