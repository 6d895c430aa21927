// Rotary positions, however they are written, are work on whole rows and on rows whose halves have changed places, which row programs hold: of halves that
// are put together (x), of halves put together and scaled behind it (w, turned for a product), and of the gradient that adds what is beside zeros.
// run: otrn compile %s --dump=rows -o %t/x.otrn > %t/rows; grep -c otrn.exchange %t/rows
// expect: 3
// run: grep -c 'stablehlo.slice\|stablehlo.pad' %t/rows || true
// expect: 0
// run: otrn compile %s --dump=rows --disable-pass=halves -o %t/apart.otrn | grep -c stablehlo.slice
// expect: 4
// run: otrn eval %s --output=%t/eval
// run: otrn run %s --check --output=%t/run && cmp %t/eval/result_0.npy %t/run/result_0.npy && cmp %t/eval/result_1.npy %t/run/result_1.npy && cmp %t/eval/result_2.npy %t/run/result_2.npy && echo the same
// expect: the same
// run: otrn run %s --disable-pass=halves --output=%t/apart && cmp %t/run/result_0.npy %t/apart/result_0.npy && cmp %t/run/result_1.npy %t/apart/result_1.npy && cmp %t/run/result_2.npy %t/apart/result_2.npy && echo the same apart
// expect: the same apart
func.func @main() -> (tensor<2x64x8x32xf32>, tensor<2x8x64x32xf32>, tensor<2x64x8x32xf32>) {
  %n = stablehlo.iota dim = 0 : tensor<32768xf32>
  %k = stablehlo.constant dense<0.37> : tensor<32768xf32>
  %nk = stablehlo.multiply %n, %k : tensor<32768xf32>
  %xs = stablehlo.sine %nk : tensor<32768xf32>
  %x = stablehlo.reshape %xs : (tensor<32768xf32>) -> tensor<2x64x8x32xf32>
  %w = stablehlo.convert %x : (tensor<2x64x8x32xf32>) -> tensor<2x64x8x32xbf16>
  %ts = stablehlo.slice %xs [100:1124] : (tensor<32768xf32>) -> tensor<1024xf32>
  %t = stablehlo.reshape %ts : (tensor<1024xf32>) -> tensor<64x16xf32>
  %us = stablehlo.slice %xs [7000:8024] : (tensor<32768xf32>) -> tensor<1024xf32>
  %u = stablehlo.reshape %us : (tensor<1024xf32>) -> tensor<64x16xf32>
  %c = stablehlo.concatenate %t, %u, dim = 1 : (tensor<64x16xf32>, tensor<64x16xf32>) -> tensor<64x32xf32>
  %a = stablehlo.slice %x [0:2, 0:64, 0:8, 0:16] : (tensor<2x64x8x32xf32>) -> tensor<2x64x8x16xf32>
  %b = stablehlo.slice %x [0:2, 0:64, 0:8, 16:32] : (tensor<2x64x8x32xf32>) -> tensor<2x64x8x16xf32>
  %cos = stablehlo.broadcast_in_dim %t, dims = [1, 3] : (tensor<64x16xf32>) -> tensor<2x64x8x16xf32>
  %sin = stablehlo.broadcast_in_dim %u, dims = [1, 3] : (tensor<64x16xf32>) -> tensor<2x64x8x16xf32>
  %ac = stablehlo.multiply %a, %cos : tensor<2x64x8x16xf32>
  %bs = stablehlo.multiply %b, %sin : tensor<2x64x8x16xf32>
  %bc = stablehlo.multiply %b, %cos : tensor<2x64x8x16xf32>
  %as = stablehlo.multiply %a, %sin : tensor<2x64x8x16xf32>
  %p = stablehlo.subtract %ac, %bs : tensor<2x64x8x16xf32>
  %q = stablehlo.add %as, %bc : tensor<2x64x8x16xf32>
  %r = stablehlo.concatenate %p, %q, dim = 3 : (tensor<2x64x8x16xf32>, tensor<2x64x8x16xf32>) -> tensor<2x64x8x32xf32>
  %wt = stablehlo.transpose %w, dims = [0, 2, 1, 3] : (tensor<2x64x8x32xbf16>) -> tensor<2x8x64x32xbf16>
  %wa = stablehlo.slice %wt [0:2, 0:8, 0:64, 0:16] : (tensor<2x8x64x32xbf16>) -> tensor<2x8x64x16xbf16>
  %wb = stablehlo.slice %wt [0:2, 0:8, 0:64, 16:32] : (tensor<2x8x64x32xbf16>) -> tensor<2x8x64x16xbf16>
  %wn = stablehlo.negate %wb : tensor<2x8x64x16xbf16>
  %wr = stablehlo.concatenate %wn, %wa, dim = 3 : (tensor<2x8x64x16xbf16>, tensor<2x8x64x16xbf16>) -> tensor<2x8x64x32xbf16>
  %wf = stablehlo.convert %wr : (tensor<2x8x64x32xbf16>) -> tensor<2x8x64x32xf32>
  %ct = stablehlo.broadcast_in_dim %c, dims = [2, 3] : (tensor<64x32xf32>) -> tensor<2x8x64x32xf32>
  %y = stablehlo.multiply %wf, %ct : tensor<2x8x64x32xf32>
  %cc = stablehlo.broadcast_in_dim %c, dims = [1, 3] : (tensor<64x32xf32>) -> tensor<2x64x8x32xf32>
  %h = stablehlo.multiply %x, %cc : tensor<2x64x8x32xf32>
  %ha = stablehlo.slice %h [0:2, 0:64, 0:8, 0:16] : (tensor<2x64x8x32xf32>) -> tensor<2x64x8x16xf32>
  %hb = stablehlo.slice %h [0:2, 0:64, 0:8, 16:32] : (tensor<2x64x8x32xf32>) -> tensor<2x64x8x16xf32>
  %hn = stablehlo.negate %ha : tensor<2x64x8x16xf32>
  %zeros = stablehlo.constant dense<0.0> : tensor<2x64x8x16xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %h1 = stablehlo.concatenate %zeros, %hn, dim = 3 : (tensor<2x64x8x16xf32>, tensor<2x64x8x16xf32>) -> tensor<2x64x8x32xf32>
  %h2 = stablehlo.pad %hb, %zero, low = [0, 0, 0, 0], high = [0, 0, 0, 16], interior = [0, 0, 0, 0] : (tensor<2x64x8x16xf32>, tensor<f32>) -> tensor<2x64x8x32xf32>
  %hs = stablehlo.add %h1, %h2 : tensor<2x64x8x32xf32>
  %g = stablehlo.multiply %x, %cc : tensor<2x64x8x32xf32>
  %s = stablehlo.add %hs, %g : tensor<2x64x8x32xf32>
  func.return %r, %y, %s : tensor<2x64x8x32xf32>, tensor<2x8x64x32xf32>, tensor<2x64x8x32xf32>
}
