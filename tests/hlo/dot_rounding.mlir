// The evaluator sums products in order, rounding to f32 (f64 for f64): 1e8 + 1 loses the 1.
// run: otrn eval %s
func.func public @main() {
  %a = stablehlo.constant dense<[1.0e8, 1.0, -1.0e8]> : tensor<3xf32>
  %one = stablehlo.constant dense<1.0> : tensor<3xf32>
  %f32 = stablehlo.dot_general %a, %one, contracting_dims = [0] x [0] : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
  check.expect_eq_const %f32, dense<0.0> : tensor<f32>
  %einsum = "stablehlo.einsum"(%a, %one) {einsum_config = "i,i->"} : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
  check.expect_eq_const %einsum, dense<0.0> : tensor<f32>

  %a64 = stablehlo.convert %a : (tensor<3xf32>) -> tensor<3xf64>
  %one64 = stablehlo.convert %one : (tensor<3xf32>) -> tensor<3xf64>
  %f64 = stablehlo.dot_general %a64, %one64, contracting_dims = [0] x [0] : (tensor<3xf64>, tensor<3xf64>) -> tensor<f64>
  check.expect_eq_const %f64, dense<1.0> : tensor<f64>

  // narrow types sum in f32: 256 + 1 + 1 would stay 256 in bf16
  %c = stablehlo.constant dense<[256.0, 1.0, 1.0]> : tensor<3xbf16>
  %oneb = stablehlo.convert %one : (tensor<3xf32>) -> tensor<3xbf16>
  %bf16 = stablehlo.dot_general %c, %oneb, contracting_dims = [0] x [0] : (tensor<3xbf16>, tensor<3xbf16>) -> tensor<bf16>
  check.expect_eq_const %bf16, dense<258.0> : tensor<bf16>

  // an algorithm that accumulates in f64
  %alg = stablehlo.dot_general %a, %one, contracting_dims = [0] x [0], algorithm = <lhs_precision_type = f64, rhs_precision_type = f64, accumulation_type = f64, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
  check.expect_eq_const %alg, dense<1.0> : tensor<f32>

  %z = stablehlo.complex %one, %a : tensor<3xcomplex<f32>>
  %u = stablehlo.complex %one, %one : tensor<3xcomplex<f32>>
  %complex = stablehlo.dot_general %z, %u, contracting_dims = [0] x [0] : (tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>) -> tensor<complex<f32>>
  check.expect_eq_const %complex, dense<(0.0, 0.0)> : tensor<complex<f32>>

  %image = stablehlo.reshape %a : (tensor<3xf32>) -> tensor<1x3x1xf32>
  %kernel = stablehlo.reshape %one : (tensor<3xf32>) -> tensor<3x1x1xf32>
  %conv = stablehlo.convolution(%image, %kernel) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x1xf32>, tensor<3x1x1xf32>) -> tensor<1x1x1xf32>
  check.expect_eq_const %conv, dense<0.0> : tensor<1x1x1xf32>
  return
}
