// A sum that goes along with a product that two cores share by rows: both have all of the operand, and each takes half of its columns, a
// matmul with ones for each of 16 tiles of k.
// run: otrn compile %s --cache=off --lnc=2 -o %t/two.otrn && otrn dis %t/two.otrn > %t/two.s && echo both $(grep -c 'ldweights.*n1=1 ' %t/two.s) second $(sed -n '/^.core 1/,$p' %t/two.s | grep -c 'ldweights.*n1=1 ')
// expect: both 32 second 16
func.func @main(%x: tensor<2048x1024xbf16>, %g: tensor<2048x1024xbf16>) -> (tensor<1024x1024xbf16>, tensor<1024xbf16>) {
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %dw = stablehlo.dot_general %x, %g, contracting_dims = [0] x [0] : (tensor<2048x1024xbf16>, tensor<2048x1024xbf16>) -> tensor<1024x1024xbf16>
  %db = stablehlo.reduce(%g init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2048x1024xbf16>, tensor<bf16>) -> tensor<1024xbf16>
  return %dw, %db : tensor<1024x1024xbf16>, tensor<1024xbf16>
}
