// A product's result that only a transpose reads goes to HBM as that lies, where columns stay together: of many small products heads beside
// each other in one transfer, and behind attention's row programs too. What somebody else reads too stays as it is (the second half, of negated operands): the same bits.
// run: otrn run %s --check
// run: otrn run %s --check --lnc=2
// run: otrn run %s --check --target=trn1
// run: otrn compile %s --target=trn2 --lnc=1 --dump=nest
// expect: dot dot_general
// expect: b(2:8192:4096:8192, 4:2048:1024:32) k(32:1:32) m(64:32:128) n(32:1:1)
// expect: block rows
// expect: dot dot_general
// expect: b(2:8192:4096:8192, 4:2048:1024:2048) k(32:1:32) m(64:32:32) n(32:1:1)
// expect: move transpose
// expect: block rows
// expect: move transpose
func.func public @main() {
  %x0 = stablehlo.iota dim = 0 : tensor<16384xf32>
  %x1 = stablehlo.sine %x0 : tensor<16384xf32>
  %x = stablehlo.reshape %x1 : (tensor<16384xf32>) -> tensor<2x4x64x32xf32>
  %w1 = stablehlo.slice %x1 [0:8192] : (tensor<16384xf32>) -> tensor<8192xf32>
  %w = stablehlo.reshape %w1 : (tensor<8192xf32>) -> tensor<2x4x32x32xf32>
  %q0 = stablehlo.iota dim = 0 : tensor<98304xf32>
  %q1 = stablehlo.cosine %q0 : tensor<98304xf32>
  %q = stablehlo.reshape %q1 : (tensor<98304xf32>) -> tensor<2x256x3x64xf32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %pa = stablehlo.dot_general %x, %w, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x4x64x32xf32>, tensor<2x4x32x32xf32>) -> tensor<2x4x64x32xf32>
  %ta = stablehlo.transpose %pa, dims = [0, 2, 1, 3] : (tensor<2x4x64x32xf32>) -> tensor<2x64x4x32xf32>
  %sa = stablehlo.dot_general %q, %q, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<2x256x3x64xf32>, tensor<2x256x3x64xf32>) -> tensor<2x3x256x256xf32>
  %ma = stablehlo.reduce(%sa init: %low) applies stablehlo.maximum across dimensions = [3] : (tensor<2x3x256x256xf32>, tensor<f32>) -> tensor<2x3x256xf32>
  %mba = stablehlo.broadcast_in_dim %ma, dims = [0, 1, 2] : (tensor<2x3x256xf32>) -> tensor<2x3x256x256xf32>
  %da = stablehlo.subtract %sa, %mba : tensor<2x3x256x256xf32>
  %ea = stablehlo.exponential %da : tensor<2x3x256x256xf32>
  %oa = stablehlo.dot_general %ea, %q, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1] : (tensor<2x3x256x256xf32>, tensor<2x256x3x64xf32>) -> tensor<2x3x256x64xf32>
  %ua = stablehlo.transpose %oa, dims = [0, 2, 1, 3] : (tensor<2x3x256x64xf32>) -> tensor<2x256x3x64xf32>
  %nx = stablehlo.negate %x : tensor<2x4x64x32xf32>
  %nq = stablehlo.negate %q : tensor<2x256x3x64xf32>
  %pb = stablehlo.dot_general %nx, %w, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x4x64x32xf32>, tensor<2x4x32x32xf32>) -> tensor<2x4x64x32xf32>
  check.expect_eq %pb, %pb : tensor<2x4x64x32xf32>
  %tbn = stablehlo.transpose %pb, dims = [0, 2, 1, 3] : (tensor<2x4x64x32xf32>) -> tensor<2x64x4x32xf32>
  %tb = stablehlo.negate %tbn : tensor<2x64x4x32xf32>
  %sb = stablehlo.dot_general %nq, %nq, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<2x256x3x64xf32>, tensor<2x256x3x64xf32>) -> tensor<2x3x256x256xf32>
  %mb = stablehlo.reduce(%sb init: %low) applies stablehlo.maximum across dimensions = [3] : (tensor<2x3x256x256xf32>, tensor<f32>) -> tensor<2x3x256xf32>
  %mbb = stablehlo.broadcast_in_dim %mb, dims = [0, 1, 2] : (tensor<2x3x256xf32>) -> tensor<2x3x256x256xf32>
  %db = stablehlo.subtract %sb, %mbb : tensor<2x3x256x256xf32>
  %eb = stablehlo.exponential %db : tensor<2x3x256x256xf32>
  %ob = stablehlo.dot_general %eb, %nq, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1] : (tensor<2x3x256x256xf32>, tensor<2x256x3x64xf32>) -> tensor<2x3x256x64xf32>
  check.expect_eq %ob, %ob : tensor<2x3x256x64xf32>
  %ubn = stablehlo.transpose %ob, dims = [0, 2, 1, 3] : (tensor<2x3x256x64xf32>) -> tensor<2x256x3x64xf32>
  %ub = stablehlo.negate %ubn : tensor<2x256x3x64xf32>
  check.expect_eq %ta, %tb : tensor<2x64x4x32xf32>
  check.expect_eq %ua, %ub : tensor<2x256x3x64xf32>
  return
}
