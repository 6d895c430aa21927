// XLA's call for LU decompositions: LAPACK's numbers (getrf), also of a tall, a wide and a singular matrix, and of complex ones.
// run: otrn eval %s && otrn run %s
// expect-not: FAIL
func.func @main() {
  %a = stablehlo.constant dense<[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [8.0, 8.0, 9.0]], [[0.0, 2.0, 0.0], [0.0, 4.0, 1.0], [0.0, 1.0, 0.0]]]> : tensor<2x3x3xf32>
  %lu, %pivots, %perm = stablehlo.custom_call @LuDecomposition(%a) : (tensor<2x3x3xf32>) -> (tensor<2x3x3xf32>, tensor<2x3xi32>, tensor<2x3xi32>)
  check.expect_almost_eq_const %lu, dense<[[[8.0, 8.0, 9.0], [0.5, 1.0, 1.5], [0.125, 1.0, 0.375]], [[0.0, 2.0, 0.0], [0.0, 4.0, 1.0], [0.0, 0.25, -0.25]]]> : tensor<2x3x3xf32>
  check.expect_eq_const %pivots, dense<[[2, 1, 2], [0, 1, 2]]> : tensor<2x3xi32>
  check.expect_eq_const %perm, dense<[[2, 1, 0], [0, 1, 2]]> : tensor<2x3xi32>
  %tall = stablehlo.constant dense<[[1.0], [-4.0], [2.0]]> : tensor<3x1xf32>
  %tlu, %tp, %tq = stablehlo.custom_call @LuDecomposition(%tall) : (tensor<3x1xf32>) -> (tensor<3x1xf32>, tensor<1xi32>, tensor<3xi32>)
  check.expect_almost_eq_const %tlu, dense<[[-4.0], [-0.25], [-0.5]]> : tensor<3x1xf32>
  check.expect_eq_const %tq, dense<[1, 0, 2]> : tensor<3xi32>
  %wide = stablehlo.constant dense<[[1.0, 2.0, 3.0]]> : tensor<1x3xf32>
  %wlu, %wp, %wq = stablehlo.custom_call @LuDecomposition(%wide) : (tensor<1x3xf32>) -> (tensor<1x3xf32>, tensor<1xi32>, tensor<1xi32>)
  check.expect_almost_eq_const %wlu, dense<[[1.0, 2.0, 3.0]]> : tensor<1x3xf32>
  %c = stablehlo.constant dense<[[(1.0, 0.0), (1.0, 0.0)], [(0.0, 2.0), (0.0, 0.0)]]> : tensor<2x2xcomplex<f32>>
  %clu, %cp, %cq = stablehlo.custom_call @LuDecomposition(%c) : (tensor<2x2xcomplex<f32>>) -> (tensor<2x2xcomplex<f32>>, tensor<2xi32>, tensor<2xi32>)
  check.expect_almost_eq_const %clu, dense<[[(0.0, 2.0), (0.0, 0.0)], [(0.0, -0.5), (1.0, 0.0)]]> : tensor<2x2xcomplex<f32>>
  return
}
