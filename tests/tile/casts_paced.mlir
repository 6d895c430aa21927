// Conversions wait for nothing. One that is wanted late does not take the DMA engines from the products before it: it begins when HBM is free.
// run: otrn compile %s --cache=off --target=trn2 --lnc=1 --dump=tile | grep -e 'src=arg[0-9]' -e 'tensor: matmul' | sed 's/.*\(matmul\|src=arg[0-9]\).*/\1/' | uniq | tr '\n' ' '
// expect: src=arg0 matmul src=arg3 matmul
func.func public @main(%x: tensor<1024x1024xbf16>, %w1: tensor<1024x1024xf32>, %w2: tensor<1024x1024xf32>, %w3: tensor<1024x1024xf32>) -> (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>, tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) {
  %n1 = stablehlo.convert %w1 : (tensor<1024x1024xf32>) -> tensor<1024x1024xbf16>
  %n2 = stablehlo.convert %w2 : (tensor<1024x1024xf32>) -> tensor<1024x1024xbf16>
  %n3 = stablehlo.convert %w3 : (tensor<1024x1024xf32>) -> tensor<1024x1024xbf16>
  %y1 = stablehlo.dot_general %x, %n1, contracting_dims = [1] x [0] : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
  %y2 = stablehlo.dot_general %y1, %n2, contracting_dims = [1] x [0] : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
  %y3 = stablehlo.dot_general %y2, %n3, contracting_dims = [1] x [0] : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
  return %y3, %n1, %n2, %n3 : tensor<1024x1024xbf16>, tensor<1024x1024xbf16>, tensor<1024x1024xbf16>, tensor<1024x1024xbf16>
}
