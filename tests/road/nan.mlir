// The first NaN is made of an Inf that something else made; without --nan the program just runs.
// run: otrn run %s --disable-pass=fold
// run: otrn run %s --disable-pass=fold --nan
// status: 1
// expect: result 0
// expect: nan.mlir:14:3: error[CHECK]: stablehlo.subtract
// expect: made a NaN in element [1, 0], from inf, inf; it had an Inf among its operands
// expect: the first Inf was made by stablehlo.divide at
// expect: nan.mlir:13
func.func @main() -> tensor<2x2xf32> {
  %a = stablehlo.constant dense<[[1.0, 2.0], [0.0, 4.0]]> : tensor<2x2xf32>
  %one = stablehlo.constant dense<1.0> : tensor<2x2xf32>
  %b = stablehlo.divide %one, %a : tensor<2x2xf32>
  %c = stablehlo.subtract %b, %b : tensor<2x2xf32>
  func.return %c : tensor<2x2xf32>
}
