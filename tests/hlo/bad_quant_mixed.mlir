// A quantised and a plain operand do not add up; elements that express different floats neither.
// run: otrn eval %s
// status: 1
// expect: bad_quant_mixed.mlir:7:3: error[VERIFY]: stablehlo.add: types
func.func public @main(%x: tensor<2x!quant.uniform<i8:f32, 0.5>>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<2xf32>
  %0 = stablehlo.add %x, %y : (tensor<2x!quant.uniform<i8:f32, 0.5>>, tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
