// Operands of a row program are loaded in the order in which its instructions read them, not in their own: the product by a number is part of
// the sum behind the exponential.
// run: otrn compile %s --cache=off --target=trn2 --lnc=1 --dump=tile
// expect: src=arg1[0]
// expect: src=arg0[0]
// expect: src=arg1[2097152]
// expect: src=arg0[2097152]
func.func @main(%a: tensor<1024x2048xf32>, %b: tensor<1024x2048xf32>) -> tensor<1024x2048xf32> {
  %0 = "otrn.rows"(%a, %b) <{broadcast_dimensions = array<i64: 0, 0>, dimension = 2048 : i64}> ({
  ^bb0(%x: tensor<2048xf32>, %y: tensor<2048xf32>):
    %tenth = stablehlo.constant dense<0.1> : tensor<2048xf32>
    %p = stablehlo.multiply %x, %tenth : tensor<2048xf32>
    %e = stablehlo.exponential %y : tensor<2048xf32>
    %s = stablehlo.add %p, %e : tensor<2048xf32>
    %z = stablehlo.multiply %s, %x : tensor<2048xf32>
    stablehlo.return %z : tensor<2048xf32>
  }) : (tensor<1024x2048xf32>, tensor<1024x2048xf32>) -> tensor<1024x2048xf32>
  func.return %0 : tensor<1024x2048xf32>
}
