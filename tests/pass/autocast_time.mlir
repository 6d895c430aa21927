// A product in bf16 takes the tensor engine a quarter of the time; converts included it is well worth it.
// run: otrn compile %s -o %t/n.otrn; otrn compile %s --auto-cast=matmult -o %t/b.otrn; otrn prof --diff %t/n.otrn %t/b.otrn | grep verdict
// expect: verdict: B is
// expect: % faster than A
// expect: tensor at work
// expect: us less
func.func @main(%a: tensor<2048x2048xf32>, %b: tensor<2048x2048xf32>) -> tensor<2048x2048xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  return %0 : tensor<2048x2048xf32>
}
