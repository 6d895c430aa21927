// Heads of a quarter of a tile: side by side they would leave lanes idle, so many such products are taken together, and the rows between them apart.
// run: otrn run %s --check
// run: otrn compile %s --target=trn2 --lnc=1 --dump=nest
// expect: dot dot_general
// expect: rows rows
// expect: dot dot_general
func.func public @main() -> tensor<8x4x32x64xf32> {
  %x0 = stablehlo.iota dim = 1 : tensor<256x256xf32>
  %small = stablehlo.constant dense<0.001> : tensor<256x256xf32>
  %x = stablehlo.multiply %x0, %small : tensor<256x256xf32>
  %w = stablehlo.constant dense<0.01> : tensor<256x256xf32>
  %bias = stablehlo.iota dim = 0 : tensor<256xf32>
  %q = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %v0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %q4 = stablehlo.reshape %q : (tensor<256x256xf32>) -> tensor<8x32x4x64xf32>
  %s = stablehlo.dot_general %q4, %q4, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<8x32x4x64xf32>, tensor<8x32x4x64xf32>) -> tensor<8x4x32x32xf32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %max = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [3] : (tensor<8x4x32x32xf32>, tensor<f32>) -> tensor<8x4x32xf32>
  %maxb = stablehlo.broadcast_in_dim %max, dims = [0, 1, 2] : (tensor<8x4x32xf32>) -> tensor<8x4x32x32xf32>
  %d = stablehlo.subtract %s, %maxb : tensor<8x4x32x32xf32>
  %p = stablehlo.exponential %d : tensor<8x4x32x32xf32>
  %bb = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<256xf32>) -> tensor<256x256xf32>
  %v = stablehlo.add %v0, %bb : tensor<256x256xf32>
  %v4 = stablehlo.reshape %v : (tensor<256x256xf32>) -> tensor<8x32x4x64xf32>
  %o = stablehlo.dot_general %p, %v4, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1] : (tensor<8x4x32x32xf32>, tensor<8x32x4x64xf32>) -> tensor<8x4x32x64xf32>
  return %o : tensor<8x4x32x64xf32>
}
