// LAPACK's gesdd, as JAX writes it for CPUs: values, orthonormal vectors also of a singular matrix, a wide one, none, NaN.
// run: otrn eval %s && otrn run %s
// expect-not: FAIL
func.func @main() {
  %a = stablehlo.constant dense<[[3.0, 0.0], [4.0, 5.0], [0.0, 0.0]]> : tensor<3x2xf64>
  %0:5 = stablehlo.custom_call @lapack_dgesdd_ffi(%a) {mhlo.backend_config = {mode = 83 : ui8}} : (tensor<3x2xf64>) -> (tensor<3x2xf64>, tensor<2xf64>, tensor<3x2xf64>, tensor<2x2xf64>, tensor<i32>)
  check.expect_almost_eq_const %0#1, dense<[6.7082039324993694, 2.2360679774997896]> : tensor<2xf64>
  check.expect_eq_const %0#4, dense<0> : tensor<i32>
  %s = stablehlo.broadcast_in_dim %0#1, dims = [1] : (tensor<2xf64>) -> tensor<3x2xf64>
  %us = stablehlo.multiply %0#2, %s : tensor<3x2xf64>
  %usv = stablehlo.dot_general %us, %0#3, contracting_dims = [1] x [0] : (tensor<3x2xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
  check.expect_almost_eq_const %usv, dense<[[3.0, 0.0], [4.0, 5.0], [0.0, 0.0]]> : tensor<3x2xf64>
  // two matrices of rank one, wide, all vectors
  %b = stablehlo.constant dense<[[[(1.0, 0.0), (0.0, 1.0), (0.0, 0.0)], [(0.0, 2.0), (-2.0, 0.0), (0.0, 0.0)]], [[(0.0, 0.0), (0.0, 0.0), (0.0, 0.0)], [(0.0, 0.0), (0.0, 0.0), (0.0, 0.0)]]]> : tensor<2x2x3xcomplex<f32>>
  %1:5 = stablehlo.custom_call @lapack_cgesdd_ffi(%b) {mhlo.backend_config = {mode = 65 : ui8}} : (tensor<2x2x3xcomplex<f32>>) -> (tensor<2x2x3xcomplex<f32>>, tensor<2x2xf32>, tensor<2x2x2xcomplex<f32>>, tensor<2x3x3xcomplex<f32>>, tensor<2xi32>)
  check.expect_almost_eq_const %1#1, dense<[[3.1622776, 0.0], [0.0, 0.0]]> : tensor<2x2xf32>
  %re = stablehlo.real %1#3 : (tensor<2x3x3xcomplex<f32>>) -> tensor<2x3x3xf32>
  %im = stablehlo.imag %1#3 : (tensor<2x3x3xcomplex<f32>>) -> tensor<2x3x3xf32>
  %minus = stablehlo.negate %im : tensor<2x3x3xf32>
  %conj = stablehlo.complex %re, %minus : tensor<2x3x3xcomplex<f32>>
  %vv = stablehlo.dot_general %1#3, %conj, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x3x3xcomplex<f32>>, tensor<2x3x3xcomplex<f32>>) -> tensor<2x3x3xcomplex<f32>>
  %vr = stablehlo.real %vv : (tensor<2x3x3xcomplex<f32>>) -> tensor<2x3x3xf32>
  check.expect_almost_eq_const %vr, dense<[[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]> : tensor<2x3x3xf32>
  // no vectors; NaN
  %c = stablehlo.constant dense<[[0x7FC00000, 1.0], [1.0, 1.0]]> : tensor<2x2xf32>
  %2:5 = stablehlo.custom_call @lapack_sgesdd_ffi(%c) {mhlo.backend_config = {mode = 78 : ui8}} : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<i32>)
  %same = stablehlo.compare EQ, %2#1, %2#1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  check.expect_eq_const %same, dense<false> : tensor<2xi1>
  check.expect_eq_const %2#4, dense<-4> : tensor<i32>
  return
}
