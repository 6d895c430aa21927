// Cores meet between products that need all rows of the one before. What is behind a barrier would need no meeting, and still comes behind
// what goes through the barrier: as micro-batches do, whose memory is not to be there twice.
// run: otrn compile %s --target=trn2 --lnc=2 --dump=placed -o %t/out.otrn | grep '^#'
// expect: # 2 dot dot_general: %2 %6 -> %7
// expect: # 3 dot dot_general: %1 %2 ->
module {
  func.func public @main(%a: tensor<2048x2048xbf16>, %b: tensor<2048x2048xbf16>) -> (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) {
    %0 = stablehlo.dot_general %b, %a, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %1 = stablehlo.dot_general %b, %0, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %2 = stablehlo.dot_general %b, %1, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %c:2 = stablehlo.optimization_barrier %2, %a : tensor<2048x2048xbf16>, tensor<2048x2048xbf16>
    %3 = stablehlo.dot_general %c#1, %b, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %4 = stablehlo.dot_general %b, %3, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %5 = stablehlo.add %4, %c#0 : tensor<2048x2048xbf16>
    return %5, %4 : tensor<2048x2048xbf16>, tensor<2048x2048xbf16>
  }
}
