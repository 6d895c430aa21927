// A row of numbers that many rows share, as an image's are for all its tokens: rows side by side in a partition read it where it lies once, and HBM
// sees it once for all of them. So do heads side by side read their mask.
// run: otrn compile %s --target=trn2 --lnc=1 --cache=off -o %t/a.otrn && otrn dis %t/a.otrn | grep 'dma.*src=arg' | sed 's/wait.*//'
// expect: src=arg1[0] stype=f32 queue=7 n0=32 n1=64 s1=1
// expect-not: n1=16 n2=64
// run: otrn dis %t/a.otrn | grep 'dma.*src=arg2' | sed 's/wait.*//'
// expect: src=arg2[0] stype=i1
// expect: n0=128 n1=128 s1=1
// expect-not: n1=4 n2=128
// run: otrn eval %S/data/rows_shared_gen.mlir --output=%t/in >%t/log; IN=%t/in/result_0.npy,%t/in/result_1.npy,%t/in/result_2.npy,%t/in/result_3.npy; otrn eval %s --input=$IN --output=%t/e >%t/log; for o in --lnc=2 --lnc=1 --check; do otrn run %s $o --target=trn2 --input=$IN --output=%t/o$o >%t/log && cmp %t/e/result_0.npy %t/o$o/result_0.npy && cmp %t/o--lnc=2/result_1.npy %t/o$o/result_1.npy || exit 1; done; echo same bits
// expect: same bits
func.func public @main(%x: tensor<16x512x64xf32>, %s: tensor<16x64xf32>, %keep: tensor<4x128xi1>, %q: tensor<4x8x128x64xbf16>) -> (tensor<16x512x64xf32>, tensor<4x8x128x64xbf16>) {
  %b = stablehlo.broadcast_in_dim %s, dims = [0, 2] : (tensor<16x64xf32>) -> tensor<16x512x64xf32>
  %y = stablehlo.multiply %x, %b : tensor<16x512x64xf32>
  %z = stablehlo.add %y, %x : tensor<16x512x64xf32>
  %scores = stablehlo.dot_general %q, %q, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<4x8x128x64xbf16>, tensor<4x8x128x64xbf16>) -> tensor<4x8x128x128xf32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %lows = stablehlo.broadcast_in_dim %low, dims = [] : (tensor<f32>) -> tensor<4x8x128x128xf32>
  %k = stablehlo.broadcast_in_dim %keep, dims = [0, 3] : (tensor<4x128xi1>) -> tensor<4x8x128x128xi1>
  %m = stablehlo.select %k, %scores, %lows : tensor<4x8x128x128xi1>, tensor<4x8x128x128xf32>
  %max = stablehlo.reduce(%m init: %low) applies stablehlo.maximum across dimensions = [3] : (tensor<4x8x128x128xf32>, tensor<f32>) -> tensor<4x8x128xf32>
  %maxes = stablehlo.broadcast_in_dim %max, dims = [0, 1, 2] : (tensor<4x8x128xf32>) -> tensor<4x8x128x128xf32>
  %d = stablehlo.subtract %m, %maxes : tensor<4x8x128x128xf32>
  %e = stablehlo.exponential %d : tensor<4x8x128x128xf32>
  %w = stablehlo.convert %e : (tensor<4x8x128x128xf32>) -> tensor<4x8x128x128xbf16>
  %o = stablehlo.dot_general %w, %q, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<4x8x128x128xbf16>, tensor<4x8x128x64xbf16>) -> tensor<4x8x128x64xbf16>
  return %z, %o : tensor<16x512x64xf32>, tensor<4x8x128x64xbf16>
}
