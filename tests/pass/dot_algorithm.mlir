// A product that names its algorithm, operands rounded to bf16 and sums in fp32, is one of bf16 on the tensor engine: a quarter of the work
// of fp32, and the evaluator's numbers.
// run: otrn compile %s --cache=off --dump=autocast -o %t/a.otrn
// expect: (tensor<64x96xf32>) -> tensor<64x96xbf16>
// expect: (tensor<64x96xbf16>, tensor<96x80xbf16>) -> tensor<64x80xf32>
// run: otrn run %t/a.otrn
// expect: result 0: tensor<64x80xf32>: -0.454593 -0.61333 -0.606331 -0.439154
// run: otrn eval %s
// expect: result 0: tensor<64x80xf32>: -0.454593 -0.61333 -0.606331 -0.439154
func.func @main() -> tensor<64x80xf32> {
  %i = stablehlo.iota dim = 0 : tensor<6144xf32>
  %c = stablehlo.constant dense<0.37> : tensor<6144xf32>
  %j = stablehlo.multiply %i, %c : tensor<6144xf32>
  %s = stablehlo.sine %j : tensor<6144xf32>
  %a = stablehlo.reshape %s : (tensor<6144xf32>) -> tensor<64x96xf32>
  %k = stablehlo.iota dim = 0 : tensor<7680xf32>
  %d = stablehlo.constant dense<0.53> : tensor<7680xf32>
  %l = stablehlo.multiply %k, %d : tensor<7680xf32>
  %t = stablehlo.sine %l : tensor<7680xf32>
  %b = stablehlo.reshape %t : (tensor<7680xf32>) -> tensor<96x80xf32>
  %r = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, algorithm = #stablehlo.dot_algorithm<lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>}> : (tensor<64x96xf32>, tensor<96x80xf32>) -> tensor<64x80xf32>
  func.return %r : tensor<64x80xf32>
}
