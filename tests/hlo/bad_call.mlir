// A call that does not fit its callee.
// run: otrn compile %s -o %t/out.otrn
// expect: bad_call.mlir:9:3: error[VERIFY]: func.call: argument 0: tensor<2xf32> where @f has tensor<3xf32>
// status: 1
func.func private @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}
func.func public @main(%a: tensor<2xf32>) -> tensor<3xf32> {
  %0 = call @f(%a) : (tensor<2xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
