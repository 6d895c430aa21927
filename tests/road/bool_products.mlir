// Products of booleans are and, their sums or.
// run: otrn eval %s
// run: otrn run %s --disable-pass=fold
func.func public @main() {
  %a = stablehlo.constant dense<[[true, true, false], [false, false, true]]> : tensor<2x3xi1>
  %b = stablehlo.constant dense<[[true, false], [true, false], [false, false]]> : tensor<3x2xi1>
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3xi1>, tensor<3x2xi1>) -> tensor<2x2xi1>
  check.expect_eq_const %c, dense<[[true, false], [false, false]]> : tensor<2x2xi1>
  %d = "stablehlo.dot"(%a, %b) : (tensor<2x3xi1>, tensor<3x2xi1>) -> tensor<2x2xi1>
  check.expect_eq_const %d, dense<[[true, false], [false, false]]> : tensor<2x2xi1>
  return
}
