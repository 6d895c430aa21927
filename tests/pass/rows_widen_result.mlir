// A wider copy that is a result as well is no reader's own: it is written, once. The number of the first value made behind the return is
// what an operation without results says of itself.
// run: otrn eval %S/data/rows_widen_in.mlir --output=%t/in >%t/log; otrn eval %s --input=%t/in/result_1.npy --output=%t/want >%t/log; otrn run %s --check --input=%t/in/result_1.npy --output=%t/got >%t/log; cmp %t/want/result_1.npy %t/got/result_1.npy && echo right
// expect: right
func.func public @main(%g: tensor<512x2048xbf16>) -> (tensor<f32>, tensor<512x2048xf32>) {
  %wide = stablehlo.convert %g : (tensor<512x2048xbf16>) -> tensor<512x2048xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%wide init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<512x2048xf32>, tensor<f32>) -> tensor<f32>
  return %sum, %wide : tensor<f32>, tensor<512x2048xf32>
}
