// A function that does not return what it declares.
// run: otrn compile %s -o %t/out.otrn
// expect: bad_return.mlir:6:3: error[VERIFY]: stablehlo.return: returned value 0: tensor<2xf32> where @main has tensor<2xi32>
// status: 1
func.func public @main(%a: tensor<2xf32>) -> tensor<2xi32> {
  return %a : tensor<2xf32>
}
