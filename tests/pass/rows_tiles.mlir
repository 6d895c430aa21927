// A norm behind a product, a bias and what it is added to: the sum is made of the product's tiles as they leave PSUM and stored in its place, as
// narrow as the product; the norm reads it alone, and so does what needs it later. In fp32, where nothing is widened for the norm, the program is one.
// run: otrn compile %s --target=trn2 --lnc=1 --dump=nest --cache=off | grep '^#'
// expect: dot dot_general: %1 %2 %0 %4 %3 -> %7
// expect: rows rows: %7 -> %6 %5
// run: sed 's/bf16/f32/g' %s | grep -v '^//' >%t/wide.mlir; otrn compile %t/wide.mlir --target=trn2 --lnc=1 --dump=nest --cache=off | grep '^#'
// expect: dot dot_general: %1 %2 -> %7
// expect: rows rows: %7 %4 %3 -> %6 %5
// run: otrn eval %S/data/rows_tiles_gen.mlir --output=%t/in >%t/log; IN=%t/in/result_0.npy,%t/in/result_1.npy,%t/in/result_2.npy,%t/in/result_3.npy; for o in --lnc=1 --lnc=2 --disable-pass=epilogue --check; do otrn run %s $o --target=trn2 --cache=off --input=$IN --output=%t/o$o >%t/log && cmp %t/o--lnc=1/result_0.npy %t/o$o/result_0.npy && cmp %t/o--lnc=1/result_1.npy %t/o$o/result_1.npy || exit 1; done; echo same bits
// expect: same bits
func.func public @main(%x: tensor<512x1024xbf16>, %w: tensor<1024x512xbf16>, %old: tensor<512x512xbf16>, %bias: tensor<512xbf16>) -> (tensor<512x512xbf16>, tensor<512xf32>) {
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x1024xbf16>, tensor<1024x512xbf16>) -> tensor<512x512xbf16>
  %b = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<512xbf16>) -> tensor<512x512xbf16>
  %pb = stablehlo.add %p, %b : tensor<512x512xbf16>
  %s = stablehlo.add %pb, %old : tensor<512x512xbf16>
  %f = stablehlo.convert %s : (tensor<512x512xbf16>) -> tensor<512x512xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%f init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<512x512xf32>, tensor<f32>) -> tensor<512xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<512xf32>) -> tensor<512x512xf32>
  %d = stablehlo.subtract %f, %sums : tensor<512x512xf32>
  %n = stablehlo.convert %d : (tensor<512x512xf32>) -> tensor<512x512xbf16>
  return %n, %sum : tensor<512x512xbf16>, tensor<512xf32>
}
