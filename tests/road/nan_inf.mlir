// --nan=inf stops at an overflow too, but not at an Inf that is written on purpose or passed on.
// run: otrn run %s --disable-pass=fold --nan
// run: otrn run %s --disable-pass=fold --nan=inf
// status: 1
// expect: result 0
// expect: nan_inf.mlir:13:3: error[CHECK]: stablehlo.exponential
// expect: made an Inf in element [1], from 1000
func.func @main() -> (tensor<2xf32>, tensor<2xf32>) {
  %least = stablehlo.constant dense<0xFF800000> : tensor<2xf32>
  %a = stablehlo.constant dense<[1.0, 1000.0]> : tensor<2xf32>
  %m = stablehlo.maximum %least, %a : tensor<2xf32>
  %p = stablehlo.add %least, %a : tensor<2xf32>
  %e = stablehlo.exponential %m : tensor<2xf32>
  func.return %e, %p : tensor<2xf32>, tensor<2xf32>
}
