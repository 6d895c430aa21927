// XLA's calls for QR decompositions: LAPACK's numbers, also of a zero column, of complex matrices and of elements whose squares overflow.
// run: otrn eval %s && otrn run %s
// expect-not: FAIL
func.func @main() {
  // numpy.linalg.qr(a, "raw") of [[3, 1], [4, 2], [0, 5]] and of zeros
  %a = stablehlo.constant dense<[[[3.0, 1.0], [4.0, 2.0], [0.0, 5.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]]> : tensor<2x3x2xf32>
  %qr, %taus = stablehlo.custom_call @Qr(%a) : (tensor<2x3x2xf32>) -> (tensor<2x3x2xf32>, tensor<2x2xf32>)
  check.expect_almost_eq_const %qr, dense<[[[-5.0, -2.2], [0.5, -5.015974], [0.0, 0.923195]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]]> : tensor<2x3x2xf32>
  check.expect_almost_eq_const %taus, dense<[[1.6, 1.079745], [0.0, 0.0]]> : tensor<2x2xf32>
  %q = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%qr, %taus) : (tensor<2x3x2xf32>, tensor<2x2xf32>) -> tensor<2x3x2xf32>
  %r = stablehlo.constant dense<[[[-5.0, -2.2], [0.0, -5.015974]], [[0.0, 0.0], [0.0, 0.0]]]> : tensor<2x2x2xf32>
  %back = stablehlo.dot_general %q, %r, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x3x2xf32>, tensor<2x2x2xf32>) -> tensor<2x3x2xf32>
  check.expect_almost_eq %back, %a : tensor<2x3x2xf32>
  %eye = stablehlo.dot_general %q, %q, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x2x2xf32>
  check.expect_almost_eq_const %eye, dense<[[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]> : tensor<2x2x2xf32>

  // elements of 1e30, whose squares are no f32
  %large = stablehlo.constant dense<[[3.0e30], [4.0e30]]> : tensor<2x1xf32>
  %lqr, %ltau = stablehlo.custom_call @Qr(%large) : (tensor<2x1xf32>) -> (tensor<2x1xf32>, tensor<1xf32>)
  %length = stablehlo.constant dense<1.0e30> : tensor<2x1xf32>
  %small = stablehlo.divide %lqr, %length : tensor<2x1xf32>
  check.expect_almost_eq_const %small, dense<[[-5.0], [0.0]]> : tensor<2x1xf32>
  check.expect_almost_eq_const %ltau, dense<[1.6]> : tensor<1xf32>

  // complex: R's diagonal is real, tau is not
  %c = stablehlo.constant dense<[[(0.0, 3.0)], [(4.0, 0.0)]]> : tensor<2x1xcomplex<f32>>
  %cqr, %ctau = stablehlo.custom_call @Qr(%c) : (tensor<2x1xcomplex<f32>>) -> (tensor<2x1xcomplex<f32>>, tensor<1xcomplex<f32>>)
  check.expect_almost_eq_const %ctau, dense<[(1.0, 0.6)]> : tensor<1xcomplex<f32>>
  %cq = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%cqr, %ctau) : (tensor<2x1xcomplex<f32>>, tensor<1xcomplex<f32>>) -> tensor<2x1xcomplex<f32>>
  check.expect_almost_eq_const %cq, dense<[[(0.0, -0.6)], [(-0.8, 0.0)]]> : tensor<2x1xcomplex<f32>>
  return
}
