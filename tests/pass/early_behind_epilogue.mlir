// A program that is put behind its product as its epilogue still finds before it what the products behind it need: the gradient of
// keys in groups of heads takes queries that are transposed for it alone, and all five products are one step.
// run: otrn compile %s --target=trn2 --lnc=1 --dump=nest
// expect: block rows
// expect-not: # dot
// run: otrn compile %s --target=trn2 --lnc=1 --dump=nest | grep -c ' block rows: \| dot dot_general: '
// expect: 1
func.func @main(%q: tensor<256x2x2x64xbf16>, %k: tensor<256x2x64xbf16>, %v: tensor<256x2x64xbf16>, %dy: tensor<256x2x2x64xbf16>,
                %most: tensor<2x2x256xf32>, %sum: tensor<2x2x256xf32>)
    -> (tensor<2x2x256x64xbf16>, tensor<2x256x64xbf16>, tensor<2x256x64xbf16>) {
  %s = stablehlo.dot_general %q, %k, batching_dims = [1] x [1], contracting_dims = [3] x [2] : (tensor<256x2x2x64xbf16>, tensor<256x2x64xbf16>) -> tensor<2x256x2x256xbf16>
  %st = stablehlo.transpose %s, dims = [0, 2, 1, 3] : (tensor<2x256x2x256xbf16>) -> tensor<2x2x256x256xbf16>
  %sf = stablehlo.convert %st : (tensor<2x2x256x256xbf16>) -> tensor<2x2x256x256xf32>
  %m = stablehlo.broadcast_in_dim %most, dims = [0, 1, 2] : (tensor<2x2x256xf32>) -> tensor<2x2x256x256xf32>
  %c = stablehlo.subtract %sf, %m : tensor<2x2x256x256xf32>
  %p = stablehlo.exponential %c : tensor<2x2x256x256xf32>
  %pn = stablehlo.convert %p : (tensor<2x2x256x256xf32>) -> tensor<2x2x256x256xbf16>
  %d = stablehlo.dot_general %dy, %v, batching_dims = [1] x [1], contracting_dims = [3] x [2] : (tensor<256x2x2x64xbf16>, tensor<256x2x64xbf16>) -> tensor<2x256x2x256xbf16>
  %dt = stablehlo.transpose %d, dims = [0, 2, 1, 3] : (tensor<2x256x2x256xbf16>) -> tensor<2x2x256x256xbf16>
  %df = stablehlo.convert %dt : (tensor<2x2x256x256xbf16>) -> tensor<2x2x256x256xf32>
  %u = stablehlo.broadcast_in_dim %sum, dims = [0, 1, 2] : (tensor<2x2x256xf32>) -> tensor<2x2x256x256xf32>
  %e = stablehlo.subtract %df, %u : tensor<2x2x256x256xf32>
  %g = stablehlo.multiply %e, %p : tensor<2x2x256x256xf32>
  %gn = stablehlo.convert %g : (tensor<2x2x256x256xf32>) -> tensor<2x2x256x256xbf16>
  %dq = stablehlo.dot_general %gn, %k, batching_dims = [0] x [1], contracting_dims = [3] x [0] : (tensor<2x2x256x256xbf16>, tensor<256x2x64xbf16>) -> tensor<2x2x256x64xbf16>
  %dk = stablehlo.dot_general %gn, %q, batching_dims = [0] x [1], contracting_dims = [1, 2] x [2, 0] : (tensor<2x2x256x256xbf16>, tensor<256x2x2x64xbf16>) -> tensor<2x256x64xbf16>
  %dv = stablehlo.dot_general %pn, %dy, batching_dims = [0] x [1], contracting_dims = [1, 2] x [2, 0] : (tensor<2x2x256x256xbf16>, tensor<256x2x2x64xbf16>) -> tensor<2x256x64xbf16>
  func.return %dq, %dk, %dv : tensor<2x2x256x64xbf16>, tensor<2x256x64xbf16>, tensor<2x256x64xbf16>
}
