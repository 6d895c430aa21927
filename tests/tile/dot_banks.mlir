// Blocks of a product take the banks of PSUM in turn, all that transposes leave, and so do products: the next block begins in the banks that have been free
// for longest.
// run: otrn compile %s --target=trn1 --lnc=1 --cache=off --dump=tile | grep ' matmul' | sed 's/.*dst=psum.0:\([0-9]*\)].*/\1/' | awk '{print $1/2048}' | uniq | tr '\n' ' '
// expect: 0 1 2 3 0 1 2 3 4 5 0 1 2 3 4 5 0 1 2 3
func.func public @main(%x: tensor<1024x256xbf16>, %w: tensor<256x512xbf16>, %v: tensor<512x256xbf16>) -> (tensor<1024x512xbf16>, tensor<1024x256xbf16>) {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<1024x256xbf16>, tensor<256x512xbf16>) -> tensor<1024x512xbf16>
  %z = stablehlo.dot_general %y, %v, contracting_dims = [1] x [0] : (tensor<1024x512xbf16>, tensor<512x256xbf16>) -> tensor<1024x256xbf16>
  return %y, %z : tensor<1024x512xbf16>, tensor<1024x256xbf16>
}
