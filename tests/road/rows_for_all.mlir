// A predicate or bound of one element in a row program: for all rows, for numbers per row, and made by a kernel just before.
// run: otrn eval %s
// run: otrn run %s --disable-pass=fold
// run: otrn compile %s --disable-pass=fold --dump=rows -o %t/out.otrn
// expect: otrn.rows
func.func public @main() {
  %p = stablehlo.constant dense<true> : tensor<i1>
  %row = stablehlo.iota dim = 1 : tensor<64x128xf32>
  %column = stablehlo.iota dim = 0 : tensor<64x128xf32>
  %a = stablehlo.multiply %row, %column : tensor<64x128xf32>
  %b = stablehlo.negate %a : tensor<64x128xf32>
  %lo = stablehlo.constant dense<3.0> : tensor<f32>
  %hi = stablehlo.constant dense<5.0> : tensor<f32>
  %q = stablehlo.not %p : tensor<i1>
  %0 = stablehlo.select %q, %b, %a : tensor<i1>, tensor<64x128xf32>
  check.expect_eq %0, %a : tensor<64x128xf32>
  %1 = stablehlo.select %p, %b, %a : tensor<i1>, tensor<64x128xf32>
  check.expect_eq %1, %b : tensor<64x128xf32>
  %two = stablehlo.add %lo, %lo : tensor<f32>
  %2 = stablehlo.clamp %hi, %a, %two : (tensor<f32>, tensor<64x128xf32>, tensor<f32>) -> tensor<64x128xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x128xf32>, tensor<f32>) -> tensor<64xf32>
  %4 = stablehlo.negate %3 : tensor<64xf32>
  %5 = stablehlo.select %q, %3, %4 : tensor<i1>, tensor<64xf32>
  %6 = stablehlo.slice %5 [0:4] : (tensor<64xf32>) -> tensor<4xf32>
  check.expect_eq_const %6, dense<[-640.0, -762.0, -765.0, -766.0]> : tensor<4xf32>
  return
}
