// Products of many batches whose left side is one number everywhere. Two cores share rows of all batches: where the second one begins inside of
// a batch, its first block is short, and the blocks of the next batch are not. Whole numbers: sums are exact in any order.
// run: otrn eval %s
// run: for t in trn1 trn2 trn3; do otrn run %s --cache=off --target=$t --lnc=1; done; otrn run %s --cache=off --lnc=2 && otrn run %s --cache=off --lnc=2 --target=trn3
// expect-not: error
func.func public @main() {
  %f = stablehlo.iota dim = 0 : tensor<384xf32>
  %x = stablehlo.reshape %f : (tensor<384xf32>) -> tensor<24x16xf32>
  %two = stablehlo.constant dense<2.0> : tensor<24x129xf32>
  %p = stablehlo.dot_general %two, %x, batching_dims = [0] x [0], contracting_dims = [] x [] : (tensor<24x129xf32>, tensor<24x16xf32>) -> tensor<24x129x16xf32>
  %n = stablehlo.negate %x : tensor<24x16xf32>
  %q = stablehlo.dot_general %two, %n, batching_dims = [0] x [0], contracting_dims = [] x [] : (tensor<24x129xf32>, tensor<24x16xf32>) -> tensor<24x129x16xf32>
  %both = stablehlo.complex %p, %q : tensor<24x129x16xcomplex<f32>>
  %re = stablehlo.real %both : (tensor<24x129x16xcomplex<f32>>) -> tensor<24x129x16xf32>
  %im = stablehlo.imag %both : (tensor<24x129x16xcomplex<f32>>) -> tensor<24x129x16xf32>
  %d = stablehlo.add %x, %x : tensor<24x16xf32>
  %want = stablehlo.broadcast_in_dim %d, dims = [0, 2] : (tensor<24x16xf32>) -> tensor<24x129x16xf32>
  check.expect_eq %re, %want : tensor<24x129x16xf32>
  %other = stablehlo.negate %want : tensor<24x129x16xf32>
  check.expect_eq %im, %other : tensor<24x129x16xf32>
  return
}
