// What a nest may not do is told before anything is made of it.
// run: sed '1,/^---1/d; /^---2/,$d' %s > %t/a.mlir; otrn compile %t/a.mlir -o %t/a.otrn || true
// run: sed '1,/^---2/d; /^---3/,$d' %s > %t/b.mlir; otrn compile %t/b.mlir -o %t/b.otrn || true
// run: sed '1,/^---3/d' %s > %t/c.mlir; otrn compile %t/c.mlir -o %t/c.otrn || true
// expect: the nest reaches elements 0 to 64 of its operand, which has 64
// expect: a product takes types of the tensor engine
// expect: a nest is a move or a product
---1
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %m = stablehlo.custom_call @otrn.nest(%x) {backend_config = "move f32 in0[0] -> out0[0] (2:63:0, 2:1:1)"} : (tensor<64xf32>) -> tensor<64xf32>
  return %m : tensor<64xf32>
}
---2
func.func @main(%x: tensor<64xi32>) -> tensor<64xf32> {
  %m = stablehlo.custom_call @otrn.nest(%x) {backend_config = "product i32 -> f32 in0[0] in0[0] -> out0[0] k(8:1:1) m(8:8:8) n(8:8:1)"} : (tensor<64xi32>) -> tensor<64xf32>
  return %m : tensor<64xf32>
}
---3
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %m = stablehlo.custom_call @otrn.nest(%x) {backend_config = "sort f32 in0[0] -> out0[0] (64:1:1)"} : (tensor<64xf32>) -> tensor<64xf32>
  return %m : tensor<64xf32>
}
