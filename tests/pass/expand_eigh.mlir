// XLA's call for eigenvalues of symmetric matrices: ascending, of the lower or the upper triangle, complex, large and tiny elements, NaN, one and no column.
// run: otrn eval %s && otrn run %s
// expect-not: FAIL
func.func @main() {
  // [[2, 1, 0], [1, 2, 1], [0, 1, 2]]: 2 - sqrt 2, 2, 2 + sqrt 2; what is above the diagonal does not count
  %a = stablehlo.constant dense<[[[2.0, 9.0, 9.0], [1.0, 2.0, 9.0], [0.0, 1.0, 2.0]], [[5.0, 0.0, 0.0], [0.0, -3.0, 0.0], [0.0, 0.0, 1.0]]]> : tensor<2x3x3xf32>
  %v, %w = stablehlo.custom_call @Eigh(%a) {backend_config = "1,1,100,1e-6"} : (tensor<2x3x3xf32>) -> (tensor<2x3x3xf32>, tensor<2x3xf32>)
  check.expect_almost_eq_const %w, dense<[[0.585786, 2.0, 3.414214], [-3.0, 1.0, 5.0]]> : tensor<2x3xf32>
  %wide = stablehlo.broadcast_in_dim %w, dims = [0, 2] : (tensor<2x3xf32>) -> tensor<2x3x3xf32>
  %scaled = stablehlo.multiply %v, %wide : tensor<2x3x3xf32>
  %back = stablehlo.dot_general %scaled, %v, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  check.expect_almost_eq_const %back, dense<[[[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]], [[5.0, 0.0, 0.0], [0.0, -3.0, 0.0], [0.0, 0.0, 1.0]]]> : tensor<2x3x3xf32>
  %eye = stablehlo.dot_general %v, %v, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  check.expect_almost_eq_const %eye, dense<[[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]> : tensor<2x3x3xf32>

  // the upper triangle, an even number of columns, squares that overflow, as they come
  %u = stablehlo.constant dense<[[3.0e30, 4.0e30], [7.0, -3.0e30]]> : tensor<2x2xf32>
  %uv, %uw = stablehlo.custom_call @Eigh(%u) {backend_config = "0,0,100,1e-6"} : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>)
  %unit = stablehlo.constant dense<1.0e30> : tensor<2xf32>
  %uw1 = stablehlo.divide %uw, %unit : tensor<2xf32>
  check.expect_almost_eq_const %uw1, dense<[5.0, -5.0]> : tensor<2xf32>

  // Hermitian, f64: [[2, -i], [i, 2]]
  %c = stablehlo.constant dense<[[(2.0, 0.0), (0.0, 0.0)], [(0.0, 1.0), (2.0, 0.0)]]> : tensor<2x2xcomplex<f64>>
  %cv, %cw = stablehlo.custom_call @Eigh(%c) {backend_config = "1,1,100,1e-6"} : (tensor<2x2xcomplex<f64>>) -> (tensor<2x2xcomplex<f64>>, tensor<2xf64>)
  check.expect_almost_eq_const %cw, dense<[1.0, 3.0]> : tensor<2xf64>

  // one NaN makes all of its matrix NaN
  %n = stablehlo.constant dense<[[[0x7FC00000, 0.0], [0.0, 1.0]], [[0.0, 2.0], [2.0, 0.0]]]> : tensor<2x2x2xf32>
  %nv, %nw = stablehlo.custom_call @Eigh(%n) {backend_config = "1,1,100,1e-6"} : (tensor<2x2x2xf32>) -> (tensor<2x2x2xf32>, tensor<2x2xf32>)
  check.expect_almost_eq_const %nw, dense<[[0x7FC00000, 0x7FC00000], [-2.0, 2.0]]> : tensor<2x2xf32>

  %one = stablehlo.constant dense<[[-7.0]]> : tensor<1x1xf32>
  %ov, %ow = stablehlo.custom_call @Eigh(%one) {backend_config = "1,1,100,1e-6"} : (tensor<1x1xf32>) -> (tensor<1x1xf32>, tensor<1xf32>)
  check.expect_almost_eq_const %ow, dense<[-7.0]> : tensor<1xf32>
  %none = stablehlo.constant dense<0.0> : tensor<0x0xf32>
  %zv, %zw = stablehlo.custom_call @Eigh(%none) {backend_config = "1,1,100,1e-6"} : (tensor<0x0xf32>) -> (tensor<0x0xf32>, tensor<0xf32>)
  return
}
