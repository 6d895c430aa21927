// Values of attention whose bias is added behind the softmax: the program that adds it goes before the softmax (pass/early.c), so that weights and values are one
// step (tile/block.c) and no weights are stored. On trn1, where the array turns operands too, that takes more than two tiles of rows (pass/rows.h).
// run: sed 's/ROWS/256/g' %s > %t/a.mlir; sed 's/ROWS/384/g' %s > %t/b.mlir; for t in trn1 trn2; do for f in a b; do echo $t $f $(otrn compile %t/$f.mlir --cache=off --lnc=1 --target=$t --dump=nest -o %t/a.otrn | grep -oE '^# [0-9]+ (dot|block)' | cut -d' ' -f3) end; otrn run %t/$f.mlir --cache=off --target=$t || echo failed; otrn eval %t/$f.mlir || echo failed; done; done
// expect: trn1 a block block dot end
// expect: trn1 b block block end
// expect: trn2 a block block end
// expect: trn2 b block block end
// expect-not: failed
func.func public @main() {
  %n = stablehlo.iota dim = 0 : tensor<ROWSxf32>
  %c = stablehlo.iota dim = 0 : tensor<64xf32>
  %a = stablehlo.broadcast_in_dim %n, dims = [1] : (tensor<ROWSxf32>) -> tensor<2xROWSx64xf32>
  %b = stablehlo.broadcast_in_dim %c, dims = [2] : (tensor<64xf32>) -> tensor<2xROWSx64xf32>
  %ab = stablehlo.multiply %a, %b : tensor<2xROWSx64xf32>
  %q = stablehlo.sine %ab : tensor<2xROWSx64xf32>
  %k = stablehlo.cosine %ab : tensor<2xROWSx64xf32>
  %w = stablehlo.slice %k [0:1, 0:64, 0:64] : (tensor<2xROWSx64xf32>) -> tensor<1x64x64xf32>
  %w2 = stablehlo.reshape %w : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
  %vv = stablehlo.dot_general %q, %w2, contracting_dims = [2] x [0] : (tensor<2xROWSx64xf32>, tensor<64x64xf32>) -> tensor<2xROWSx64xf32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2xROWSx64xf32>, tensor<2xROWSx64xf32>) -> tensor<2xROWSxROWSxf32>
  %none = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %max = stablehlo.reduce(%s init: %none) applies stablehlo.maximum across dimensions = [2] : (tensor<2xROWSxROWSxf32>, tensor<f32>) -> tensor<2xROWSxf32>
  %maxes = stablehlo.broadcast_in_dim %max, dims = [0, 1] : (tensor<2xROWSxf32>) -> tensor<2xROWSxROWSxf32>
  %d = stablehlo.subtract %s, %maxes : tensor<2xROWSxROWSxf32>
  %e = stablehlo.exponential %d : tensor<2xROWSxROWSxf32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2xROWSxROWSxf32>, tensor<f32>) -> tensor<2xROWSxf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<2xROWSxf32>) -> tensor<2xROWSxROWSxf32>
  %p = stablehlo.divide %e, %sums : tensor<2xROWSxROWSxf32>
  %bias = stablehlo.exponential %c : tensor<64xf32>
  %biases = stablehlo.broadcast_in_dim %bias, dims = [2] : (tensor<64xf32>) -> tensor<2xROWSx64xf32>
  %v = stablehlo.add %vv, %biases : tensor<2xROWSx64xf32>
  %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2xROWSxROWSxf32>, tensor<2xROWSx64xf32>) -> tensor<2xROWSx64xf32>
  %off = stablehlo.subtract %o, %biases : tensor<2xROWSx64xf32>
  %size = stablehlo.abs %off : tensor<2xROWSx64xf32>
  %small = stablehlo.constant dense<64.0> : tensor<2xROWSx64xf32>
  %rel = stablehlo.divide %size, %biases : tensor<2xROWSx64xf32>
  %ok = stablehlo.compare LE, %rel, %small : (tensor<2xROWSx64xf32>, tensor<2xROWSx64xf32>) -> tensor<2xROWSx64xi1>
  %yes = stablehlo.constant dense<true> : tensor<2xROWSx64xi1>
  check.expect_eq %ok, %yes : tensor<2xROWSx64xi1>
  return
}
