// A product of numbers that were widened to fp32 is one of the narrow numbers, summed in fp32: the same terms in a quarter of the tensor engine's time.
// What only moves between the widening and the product moves narrow. With an operand of fp32, or of another type, it stays one of fp32.
// run: otrn compile %s --cache=off --dump=dots -o %t/a.otrn
// expect: (tensor<64x96xbf16>, tensor<80x96xbf16>) -> tensor<64x80xf32>
// expect: (tensor<64x80xf32>, tensor<80x64xf32>) -> tensor<64x64xf32>
// expect: (tensor<64x96xf32>, tensor<80x96xf32>) -> tensor<64x80xf32>
// run: otrn run %s --cache=off
// expect: result 0: tensor<64x64xf32>: -5.1572 -2.56237
// expect: result 1: tensor<64x80xf32>: 1.80909 -1.51983 -4.29207 -5.49499
// run: otrn eval %s
// expect: result 0: tensor<64x64xf32>: -5.1572 -2.56237
// expect: result 1: tensor<64x80xf32>: 1.80909 -1.51983 -4.29207 -5.49499
func.func @main() -> (tensor<64x64xf32>, tensor<64x80xf32>) {
  %i = stablehlo.iota dim = 0 : tensor<6144xf32>
  %c = stablehlo.constant dense<0.37> : tensor<6144xf32>
  %j = stablehlo.multiply %i, %c : tensor<6144xf32>
  %s = stablehlo.sine %j : tensor<6144xf32>
  %half = stablehlo.convert %s : (tensor<6144xf32>) -> tensor<6144xbf16>
  %wide = stablehlo.convert %half : (tensor<6144xbf16>) -> tensor<6144xf32>
  %a = stablehlo.reshape %wide : (tensor<6144xf32>) -> tensor<64x96xf32>
  %k = stablehlo.iota dim = 0 : tensor<7680xf32>
  %d = stablehlo.constant dense<0.53> : tensor<7680xf32>
  %l = stablehlo.multiply %k, %d : tensor<7680xf32>
  %t = stablehlo.sine %l : tensor<7680xf32>
  %f = stablehlo.reshape %t : (tensor<7680xf32>) -> tensor<80x96xf32>
  %narrow = stablehlo.convert %f : (tensor<80x96xf32>) -> tensor<80x96xbf16>
  %again = stablehlo.convert %narrow : (tensor<80x96xbf16>) -> tensor<80x96xf32>
  %b = stablehlo.transpose %again, dims = [1, 0] : (tensor<80x96xf32>) -> tensor<96x80xf32>
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x96xf32>, tensor<96x80xf32>) -> tensor<64x80xf32>
  %v = stablehlo.slice %s [0:5120] : (tensor<6144xf32>) -> tensor<5120xf32>
  %w = stablehlo.convert %v : (tensor<5120xf32>) -> tensor<5120xbf16>
  %x = stablehlo.convert %w : (tensor<5120xbf16>) -> tensor<5120xf32>
  %y = stablehlo.reshape %x : (tensor<5120xf32>) -> tensor<80x64xf32>
  %p = stablehlo.dot_general %r, %y, contracting_dims = [1] x [0] : (tensor<64x80xf32>, tensor<80x64xf32>) -> tensor<64x64xf32>
  %m = stablehlo.convert %f : (tensor<80x96xf32>) -> tensor<80x96xf16>
  %n = stablehlo.convert %m : (tensor<80x96xf16>) -> tensor<80x96xf32>
  %o = stablehlo.transpose %n, dims = [1, 0] : (tensor<80x96xf32>) -> tensor<96x80xf32>
  %q = stablehlo.dot_general %a, %o, contracting_dims = [1] x [0] : (tensor<64x96xf32>, tensor<96x80xf32>) -> tensor<64x80xf32>
  func.return %p, %q : tensor<64x64xf32>, tensor<64x80xf32>
}
