// The rarer functions of chlo: values computed with many digits, poles, and where there is no real value.
// Left of zero the two sides of zeta cancel, which costs some digits.
// run: otrn eval %s
// run: otrn run %s --disable-pass=fold
func.func public @main() {
  %x = stablehlo.constant dense<[1.50000000000000000e+00, 2.00000000000000000e+00, 2.00000000000000000e+00, 3.00000000000000000e+00, 3.00000000000000000e+00, 7.25000000000000000e+00, 2.00000000000000000e+00, 3.00000000000000000e+00, 2.00000000000000000e+00, 4.00000000000000000e+01, 1.00000010000000006e+00, 2.50000000000000000e+00, 3.00000000000000000e+01, 2.00000000000000000e+00, 5.00000000000000000e+00]> : tensor<15xf64>
  %q = stablehlo.constant dense<[2.99999999999999989e-01, 1.00000000000000000e+00, -2.50000000000000000e+00, -2.50000000000000000e+00, -1.25000000000000000e+00, 6.99999999999999956e-01, 1.00000000000000000e+05, 1.71999999999999993e+01, 1.00000000000000002e-03, 9.00000000000000022e-01, 3.00000000000000000e+00, 1.00000000000000000e+02, 5.00000000000000000e-01, -1.00025000000000000e+03, 1.00000000000000000e+10]> : tensor<15xf64>
  %zeta = chlo.zeta %x, %q : tensor<15xf64>, tensor<15xf64> -> tensor<15xf64>
  %zeta_want = stablehlo.constant dense<[8.23776167145972416e+00, 1.64493406684822641e+00, 9.53924664498912378e+00, 5.41020258208637014e-02, -6.18606833918311807e+01, 1.32973257129253675e+01, 1.00000500001666665e-05, 1.79121778620515166e-03, 1.00000164253319579e+06, 6.76549570118607733e+01, 9.99999907137703523e+06, 6.71687499453171551e-04, 1.07374182400000525e+09, 1.97382095516997857e+01, 2.50000000049999975e-41]> : tensor<15xf64>
  "check.expect_close"(%zeta, %zeta_want) {max_ulp_difference = 64 : i64, min_ulp_difference = 0 : i64} : (tensor<15xf64>, tensor<15xf64>) -> ()
  %n = stablehlo.constant dense<[0.00000000000000000e+00, 1.00000000000000000e+00, 2.00000000000000000e+00, 3.00000000000000000e+00, 4.00000000000000000e+00, 1.00000000000000000e+01]> : tensor<6xf64>
  %p = stablehlo.constant dense<[2.50000000000000000e+00, 5.00000000000000000e-01, -1.50000000000000000e+00, 3.25000000000000000e+00, -7.50000000000000000e-01, 8.00000000000000000e+00]> : tensor<6xf64>
  %poly = chlo.polygamma %n, %p : tensor<6xf64>, tensor<6xf64> -> tensor<6xf64>
  %poly_want = stablehlo.constant dense<[7.03156640645243192e-01, 4.93480220054467900e+00, -2.36204051641727392e-01, 9.04333553246557398e-02, -2.44832395861687983e+04, -5.95760517377554835e-04]> : tensor<6xf64>
  "check.expect_close"(%poly, %poly_want) {max_ulp_difference = 64 : i64, min_ulp_difference = 0 : i64} : (tensor<6xf64>, tensor<6xf64>) -> ()
  %sx = stablehlo.constant dense<[1.0, 0.5, 2.0, 3.0, 2.5, 0x7F800000, 2.0]> : tensor<7xf32>
  %sq = stablehlo.constant dense<[2.0, 1.0, -3.0, -3.0, -1.5, 2.0, 0x7F800000]> : tensor<7xf32>
  %special = chlo.zeta %sx, %sq : tensor<7xf32>, tensor<7xf32> -> tensor<7xf32>
  check.expect_eq_const %special, dense<[0x7F800000, 0x7FC00000, 0x7F800000, 0x7FC00000, 0x7FC00000, 0.0, 0.0]> : tensor<7xf32>
  %nn = stablehlo.constant dense<[-1.0, 1.5, 1.0]> : tensor<3xf32>
  %nx = stablehlo.constant dense<[1.0, 1.0, -2.0]> : tensor<3xf32>
  %none = chlo.polygamma %nn, %nx : tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  check.expect_eq_const %none, dense<[0x7FC00000, 0x7FC00000, 0x7F800000]> : tensor<3xf32>

  %i = stablehlo.constant dense<[-2147483648, 2147483647, -1, 65536]> : tensor<4xi32>
  %j = stablehlo.constant dense<[-2147483648, 2147483647, 1, 65536]> : tensor<4xi32>
  %hi = chlo.mulhi %i, %j : tensor<4xi32>, tensor<4xi32> -> tensor<4xi32>
  check.expect_eq_const %hi, dense<[1073741824, 1073741823, -1, 1]> : tensor<4xi32>
  %u = stablehlo.constant dense<[18446744073709551615, 4294967296]> : tensor<2xui64>
  %uhi = chlo.mulhi %u, %u : tensor<2xui64>, tensor<2xui64> -> tensor<2xui64>
  check.expect_eq_const %uhi, dense<[18446744073709551614, 1]> : tensor<2xui64>

  %c = stablehlo.constant dense<[(1.0, 2.0), (3.0, -4.0)]> : tensor<2xcomplex<f32>>
  %conj = chlo.conj %c : tensor<2xcomplex<f32>> -> tensor<2xcomplex<f32>>
  check.expect_eq_const %conj, dense<[(1.0, -2.0), (3.0, 4.0)]> : tensor<2xcomplex<f32>>
  %v = stablehlo.constant dense<[0x7F800000, 0xFF800000, 0x7FC00000, 1.0]> : tensor<4xf32>
  %any = chlo.is_inf %v : tensor<4xf32> -> tensor<4xi1>
  check.expect_eq_const %any, dense<[true, true, false, false]> : tensor<4xi1>
  %pos = chlo.is_pos_inf %v : tensor<4xf32> -> tensor<4xi1>
  check.expect_eq_const %pos, dense<[true, false, false, false]> : tensor<4xi1>
  %neg = chlo.is_neg_inf %v : tensor<4xf32> -> tensor<4xi1>
  check.expect_eq_const %neg, dense<[false, true, false, false]> : tensor<4xi1>
  return
}
