// Operations that no other stage knows: einsum and torch_index_select in common terms.
// run: otrn eval %s
// run: otrn run %s --disable-pass=fold
// run: otrn compile %s --dump=expand -o %t/out.otrn
// expect: stablehlo.reduce
// expect: stablehlo.dot_general
// expect: stablehlo.transpose
// expect: stablehlo.gather
// expect-not: einsum
// expect-not: torch_index_select
func.func public @main() {
  %a = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %b = stablehlo.constant dense<[[1.0, 10.0], [100.0, 1000.0], [0.5, 0.25]]> : tensor<3x2xf32>

  // j of a and l of b are in one operand only; the product comes out as ik
  %outer = "stablehlo.einsum"(%a, %b) {einsum_config = "ij,kl->ki"} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  check.expect_eq_const %outer, dense<[[66.0, 165.0], [6600.0, 16500.0], [4.5, 11.25]]> : tensor<3x2xf32>
  %product = "stablehlo.einsum"(%a, %b) {einsum_config = "ij,jk->ik"} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  check.expect_eq_const %product, dense<[[202.5, 2010.75], [507.0, 5041.5]]> : tensor<2x2xf32>
  %batch = "stablehlo.einsum"(%a, %b) {einsum_config = "ij,ji->ji"} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  check.expect_eq_const %batch, dense<[[1.0, 40.0], [200.0, 5000.0], [1.5, 1.5]]> : tensor<3x2xf32>
  %sum = "stablehlo.unary_einsum"(%a) {einsum_config = "ij->j"} : (tensor<2x3xf32>) -> tensor<3xf32>
  check.expect_eq_const %sum, dense<[5.0, 7.0, 9.0]> : tensor<3xf32>

  // indices outside are clamped
  %i = stablehlo.constant dense<[[2, 7], [-1, 1]]> : tensor<2x2xi32>
  %each = "stablehlo.torch_index_select"(%a, %i) {dim = 1 : i64, batch_dims = 1 : i64} : (tensor<2x3xf32>, tensor<2x2xi32>) -> tensor<2x2xf32>
  check.expect_eq_const %each, dense<[[3.0, 3.0], [4.0, 5.0]]> : tensor<2x2xf32>
  %all = "stablehlo.torch_index_select"(%b, %i) {dim = 0 : i64, batch_dims = 0 : i64} : (tensor<3x2xf32>, tensor<2x2xi32>) -> tensor<2x2x2xf32>
  check.expect_eq_const %all, dense<[[[0.5, 0.25], [0.5, 0.25]], [[1.0, 10.0], [100.0, 1000.0]]]> : tensor<2x2x2xf32>
  return
}
