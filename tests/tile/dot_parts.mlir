// A product begins when the first tile of k of both operands is there, not the whole first chunk; its last results leave tile by tile, each by the
// engine that is through with it first.
// run: otrn compile %s --target=trn2 --lnc=1 --cache=off --dump=tile
// expect: dma dst=sbuf[0:12288] src=arg1[0] stype=bf16 n0=128 n1=512 @
// expect: matmul dst=psum[0:0] src=sbuf[0:12288] stype=bf16 n0=128 n1=512 n2=128 wait(q0>=1)
// expect: dma dst=result0[0] src=sbuf[0:73728] stype=bf16 queue=5 n0=128 n1=512 wait(scalar>=1)
// expect: dma dst=result0[131072] src=sbuf[0:74752] stype=bf16 queue=4 n0=128 n1=512 wait(vector>=1)
func.func @main(%a: tensor<512x1024xbf16>, %b: tensor<1024x512xbf16>) -> tensor<512x512xbf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<512x1024xbf16>, tensor<1024x512xbf16>) -> tensor<512x512xbf16>
  func.return %0 : tensor<512x512xbf16>
}
