// LAPACK's calls, as JAX writes them for CPUs: options as letters in either attribute, pivots and failures counted from 1.
// run: otrn eval %s && otrn run %s
// expect-not: FAIL
func.func @main() {
  %a = stablehlo.constant dense<[[[4.0, 2.0], [2.0, 5.0]], [[4.0, 2.0], [2.0, 0.0]]]> : tensor<2x2x2xf32>
  %l, %ok = stablehlo.custom_call @lapack_spotrf_ffi(%a) {mhlo.backend_config = {uplo = 76 : ui8}} : (tensor<2x2x2xf32>) -> (tensor<2x2x2xf32>, tensor<2xi32>)
  check.expect_eq_const %ok, dense<[0, 2]> : tensor<2xi32>
  %below = stablehlo.slice %l [0:1, 1:2, 0:2] : (tensor<2x2x2xf32>) -> tensor<1x1x2xf32>
  check.expect_almost_eq_const %below, dense<[[[1.0, 2.0]]]> : tensor<1x1x2xf32>
  %u, %uok = stablehlo.custom_call @lapack_spotrf_ffi(%a) {api_version = 4 : i32, backend_config = {uplo = 85 : ui8}} : (tensor<2x2x2xf32>) -> (tensor<2x2x2xf32>, tensor<2xi32>)
  %right = stablehlo.slice %u [0:1, 0:2, 1:2] : (tensor<2x2x2xf32>) -> tensor<1x2x1xf32>
  check.expect_almost_eq_const %right, dense<[[[1.0], [2.0]]]> : tensor<1x2x1xf32>
  %m = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [8.0, 8.0, 9.0]]> : tensor<3x3xf64>
  %lu, %pivots, %info = stablehlo.custom_call @lapack_dgetrf_ffi(%m) {mhlo.backend_config = {}} : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3xi32>, tensor<i32>)
  check.expect_almost_eq_const %lu, dense<[[8.0, 8.0, 9.0], [0.5, 1.0, 1.5], [0.125, 1.0, 0.375]]> : tensor<3x3xf64>
  check.expect_eq_const %pivots, dense<[3, 2, 3]> : tensor<3xi32>
  check.expect_eq_const %info, dense<0> : tensor<i32>
  %s = stablehlo.constant dense<[[1.0, 2.0], [2.0, 4.0]]> : tensor<2x2xf64>
  %slu, %sp, %singular = stablehlo.custom_call @lapack_dgetrf_ffi(%s) : (tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2xi32>, tensor<i32>)
  check.expect_eq_const %singular, dense<2> : tensor<i32>
  // |re| + |im|: 3 + 3 before 5
  %c = stablehlo.constant dense<[[(0.0, 5.0)], [(3.0, 3.0)]]> : tensor<2x1xcomplex<f32>>
  %clu, %cp, %ci = stablehlo.custom_call @lapack_cgetrf_ffi(%c) : (tensor<2x1xcomplex<f32>>) -> (tensor<2x1xcomplex<f32>>, tensor<1xi32>, tensor<i32>)
  check.expect_eq_const %cp, dense<2> : tensor<1xi32>
  %packed, %taus = stablehlo.custom_call @lapack_dgeqrf_ffi(%m) : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3xf64>)
  %q = stablehlo.custom_call @lapack_dorgqr_ffi(%packed, %taus) : (tensor<3x3xf64>, tensor<3xf64>) -> tensor<3x3xf64>
  %whole = stablehlo.dot_general %q, %q, contracting_dims = [0] x [0] : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  check.expect_almost_eq_const %whole, dense<[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]> : tensor<3x3xf64>
  %h = stablehlo.constant dense<[[2.0, 9.0], [0.0, 3.0]]> : tensor<2x2xf64>
  %v, %w, %done = stablehlo.custom_call @lapack_dsyevd_ffi(%h) {mhlo.backend_config = {mode = 86 : ui8, uplo = 76 : ui8}} : (tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2xf64>, tensor<i32>)
  check.expect_almost_eq_const %w, dense<[2.0, 3.0]> : tensor<2xf64>
  %b = stablehlo.constant dense<[[1.0], [2.0]]> : tensor<2x1xf64>
  %x = stablehlo.custom_call @lapack_dtrsm_ffi(%h, %b) {mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 84 : ui8, uplo = 85 : ui8}} : (tensor<2x2xf64>, tensor<2x1xf64>) -> tensor<2x1xf64>
  check.expect_almost_eq_const %x, dense<[[0.5], [-0.8333333333333333]]> : tensor<2x1xf64>
  return
}
