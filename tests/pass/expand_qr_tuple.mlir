// As TensorFlow writes it: a call whose result is a tuple.
// run: otrn run %s
// expect: result 0: tensor<2x1xf32>: -5 0.5
// expect: result 1: tensor<1xf32>: 1.6
func.func @main() -> (tensor<2x1xf32>, tensor<1xf32>) {
  %a = stablehlo.constant dense<[[3.0], [4.0]]> : tensor<2x1xf32>
  %qr = stablehlo.custom_call @Qr(%a) : (tensor<2x1xf32>) -> tuple<tensor<2x1xf32>, tensor<1xf32>>
  %0 = stablehlo.get_tuple_element %qr[0] : (tuple<tensor<2x1xf32>, tensor<1xf32>>) -> tensor<2x1xf32>
  %1 = stablehlo.get_tuple_element %qr[1] : (tuple<tensor<2x1xf32>, tensor<1xf32>>) -> tensor<1xf32>
  return %0, %1 : tensor<2x1xf32>, tensor<1xf32>
}
