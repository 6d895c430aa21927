// A product whose left side is one number everywhere, as the ones of a sum are: it is set in SBUF, no kernel makes it and
// no transfer brings it. Small whole numbers: sums are exact in any order.
// run: otrn eval %s
// run: otrn run %s --cache=off --threads=1
// run: otrn run %s --cache=off --threads=2
// run: otrn run %s --cache=off --plan=off --check
// run: otrn run %s --cache=off --host=portable --target=trn1 --lnc=1
// run: otrn run %s --cache=off --lnc=2
// run: otrn compile %s --cache=off --lnc=1 -o %t/a.otrn && otrn dis %t/a.otrn | grep -c 'gpsimd: memset'
// expect: 2
// run: otrn dis %t/a.otrn | grep 'kernel [0-9]* stablehlo.broadcast_in_dim'; true
// expect-not: kernel
func.func public @main() {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %i = stablehlo.iota dim = 0 : tensor<2310000xi32>
  %m = stablehlo.constant dense<7> : tensor<2310000xi32>
  %r = stablehlo.remainder %i, %m : tensor<2310000xi32>
  %f = stablehlo.convert %r : (tensor<2310000xi32>) -> tensor<2310000xf32>
  %x = stablehlo.reshape %f : (tensor<2310000xf32>) -> tensor<3300x700xf32>
  // down the rows, over several chunks and with tails, and along the rows of the transpose
  %down = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<3300x700xf32>, tensor<f32>) -> tensor<700xf32>
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<3300x700xf32>) -> tensor<700x3300xf32>
  %along = stablehlo.reduce(%t init: %z) applies stablehlo.add across dimensions = [1] : (tensor<700x3300xf32>, tensor<f32>) -> tensor<700xf32>
  check.expect_eq %down, %along : tensor<700xf32>
  // more rows of results than a block has, of another number
  %two = stablehlo.constant dense<2.0> : tensor<600x3300xbf16>
  %b = stablehlo.slice %x [0:3300, 100:300] : (tensor<3300x700xf32>) -> tensor<3300x200xf32>
  %c = stablehlo.convert %b : (tensor<3300x200xf32>) -> tensor<3300x200xbf16>
  %p = stablehlo.dot_general %two, %c, contracting_dims = [1] x [0] : (tensor<600x3300xbf16>, tensor<3300x200xbf16>) -> tensor<600x200xf32>
  %part = stablehlo.slice %down [100:300] : (tensor<700xf32>) -> tensor<200xf32>
  %sum = stablehlo.add %part, %part : tensor<200xf32>
  %rows = stablehlo.broadcast_in_dim %sum, dims = [1] : (tensor<200xf32>) -> tensor<600x200xf32>
  check.expect_eq %p, %rows : tensor<600x200xf32>
  func.return
}
