// What a program reads of two products lies in PSUM, where an instruction has one operand: the scaled one is not folded into the sum with the other.
// run: otrn run %s --cache=off --output=%t/a && otrn eval %s --output=%t/b && cmp %t/a/result_0.npy %t/b/result_0.npy
// run: otrn compile %s --cache=off --target=trn1 -o %t/x.otrn && otrn compile %s --cache=off --target=trn3 -o %t/x.otrn
// run: otrn compile %s --cache=off --target=trn2 --lnc=1 --dump=nest
// expect: block rows
func.func @main() -> tensor<4x4x128x128xf32> {
  %q = stablehlo.iota dim = 3 : tensor<4x4x128x64xf32>
  %k = stablehlo.iota dim = 2 : tensor<4x4x128x64xf32>
  %u = stablehlo.iota dim = 2 : tensor<4x4x128x64xf32>
  %v = stablehlo.iota dim = 3 : tensor<4x4x64x128xf32>
  %r = stablehlo.iota dim = 2 : tensor<1x4x128x1xf32>
  %a = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<4x4x128x64xf32>, tensor<4x4x128x64xf32>) -> tensor<4x4x128x128xf32>
  %b = stablehlo.broadcast_in_dim %r, dims = [0, 1, 2, 3] : (tensor<1x4x128x1xf32>) -> tensor<4x4x128x128xf32>
  %m = stablehlo.multiply %a, %b : tensor<4x4x128x128xf32>
  %c = stablehlo.dot_general %u, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<4x4x128x64xf32>, tensor<4x4x64x128xf32>) -> tensor<4x4x128x128xf32>
  %s = stablehlo.add %m, %c : tensor<4x4x128x128xf32>
  return %s : tensor<4x4x128x128xf32>
}
