// A value of one function used in another.
// run: otrn compile %s -o %t/out.otrn
// expect: bad_scope.mlir:9:10: error[PARSE]: the value %x is not defined here
// status: 1
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
func.func public @main() -> tensor<f32> {
  return %x : tensor<f32>
}
