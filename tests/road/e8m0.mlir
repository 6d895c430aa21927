// A power of two and nothing else: zero, negative numbers and infinities are NaN, as in ml_dtypes and JAX; between the least
// two everything goes up.
// run: otrn eval %s
// run: otrn run %s --host=portable
// run: otrn run %s
func.func @main() {
  %x = stablehlo.constant dense<[0.0, -0.0, -1.0, 1.0, 1.5, 3.0, 0x00400000, 0x00400001, 0x00000001, 0x00bfffff, 0x00c00000, 0x7f800000]> : tensor<12xf32>
  %y = stablehlo.convert %x : (tensor<12xf32>) -> tensor<12xf8E8M0FNU>
  %b = stablehlo.bitcast_convert %y : (tensor<12xf8E8M0FNU>) -> tensor<12xui8>
  check.expect_eq_const %b, dense<[255, 255, 255, 127, 128, 129, 0, 1, 0, 1, 2, 255]> : tensor<12xui8>
  %d = stablehlo.convert %x : (tensor<12xf32>) -> tensor<12xf64>
  %e = stablehlo.convert %d : (tensor<12xf64>) -> tensor<12xf8E8M0FNU>
  %f = stablehlo.bitcast_convert %e : (tensor<12xf8E8M0FNU>) -> tensor<12xui8>
  check.expect_eq_const %f, dense<[255, 255, 255, 127, 128, 129, 0, 1, 0, 1, 2, 255]> : tensor<12xui8>
  %i = stablehlo.constant dense<[0, 1, 3]> : tensor<3xi32>
  %j = stablehlo.convert %i : (tensor<3xi32>) -> tensor<3xf8E8M0FNU>
  %k = stablehlo.bitcast_convert %j : (tensor<3xf8E8M0FNU>) -> tensor<3xui8>
  check.expect_eq_const %k, dense<[255, 127, 129]> : tensor<3xui8>
  return
}
