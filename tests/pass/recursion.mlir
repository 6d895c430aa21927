// A function that calls itself is refused, not followed for ever.
// run: otrn compile %s -o %t/out.otrn
// status: 1
// expect: error[
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @main(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
