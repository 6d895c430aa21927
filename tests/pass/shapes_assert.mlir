// An assertion that fails tells so before anything runs, with the sizes filled in.
// run: otrn run %s
// status: 1
// expect: error[ARGUMENT]: expected at least 5, found 4 of 4
func.func public @main() {
  %c = stablehlo.constant dense<[3.0, 1.0, 2.0, 5.0]> : tensor<4xf32>
  %n = stablehlo.get_dimension_size %c, dim = 0 : (tensor<4xf32>) -> tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %ok = stablehlo.compare GE, %n, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%ok, %n, %n) {api_version = 2 : i32, error_message = "expected at least 5, found {0} of {1}", has_side_effect = true} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()
  return
}
