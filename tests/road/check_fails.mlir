// A failing check gives status 1, its place and the values, on both roads.
// run: otrn eval %s; test $? = 1 && otrn run %s
// expect: error[CHECK]
// expect: error[CHECK]
// status: 1
func.func public @main() {
  %a = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = stablehlo.constant dense<[1.0, 2.5]> : tensor<2xf32>
  stablehlo.custom_call @check.expect_eq(%a, %b) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  return
}
