// Tiles of few columns, of f32 too, go through the row program behind their product four together; one that repeats a row longer than a tile stays apart.
// run: otrn run %s --check
// run: otrn compile %s --target=trn2 --lnc=1 --cache=off --dump=tile -o %t/a.otrn | grep -m1 -o 'src=psum.* n0=128 n1=4 n2=8'
// expect: n1=4 n2=8
// run: otrn compile %s --target=trn2 --lnc=1 --cache=off --dump=tile -o %t/a.otrn | awk '/dma dst=result1/ { n++ } END { print (n > 16 ? "element by element" : "in runs") }'
// expect: in runs
func.func public @main() -> (tensor<4096x8xf32>, tensor<8x512xf32>) {
  %a = stablehlo.iota dim = 1 : tensor<4096x16xf32>
  %b = stablehlo.iota dim = 0 : tensor<16x8xf32>
  %x = stablehlo.iota dim = 0 : tensor<4096x8xf32>
  %dot = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4096x16xf32>, tensor<16x8xf32>) -> tensor<4096x8xf32>
  %y = stablehlo.multiply %dot, %x : tensor<4096x8xf32>
  %h = stablehlo.iota dim = 2 : tensor<8x512x16xf32>
  %c = stablehlo.iota dim = 1 : tensor<8x16xf32>
  %w = stablehlo.iota dim = 0 : tensor<512xf32>
  %d = stablehlo.dot_general %h, %c, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x512x16xf32>, tensor<8x16xf32>) -> tensor<8x512xf32>
  %wb = stablehlo.broadcast_in_dim %w, dims = [1] : (tensor<512xf32>) -> tensor<8x512xf32>
  %z = stablehlo.multiply %d, %wb : tensor<8x512xf32>
  return %y, %z : tensor<4096x8xf32>, tensor<8x512xf32>
}
