// Both operands have their contracted dimension dense, on a chip whose transfers do not transpose: the array turns one of them
// the first time it comes, a transfer stores it so, and later blocks take it from there. The same product of operands that
// lie the other way has the same sums. Small whole numbers: these are exact.
// run: otrn run %s --cache=off --target=trn1
// run: otrn run %s --cache=off --target=trn1 --plan=off --check
// run: otrn compile %s --cache=off --target=trn1 --dump=tile -o %t/a.otrn | grep 'dma dst=scratch.* src=sbuf.* stype=bf16 queue=[45]'
// expect: dst=scratch
func.func public @main() { // a batch of two
  %li0 = stablehlo.iota dim = 0 : tensor<2x3000x2100xi32>
  %li1 = stablehlo.iota dim = 1 : tensor<2x3000x2100xi32>
  %li2 = stablehlo.iota dim = 2 : tensor<2x3000x2100xi32>
  %la = stablehlo.constant dense<3> : tensor<2x3000x2100xi32>
  %lb = stablehlo.constant dense<5> : tensor<2x3000x2100xi32>
  %lm = stablehlo.constant dense<7> : tensor<2x3000x2100xi32>
  %lo = stablehlo.constant dense<3> : tensor<2x3000x2100xi32>
  %l2 = stablehlo.multiply %li1, %la : tensor<2x3000x2100xi32>
  %l3 = stablehlo.multiply %li2, %lb : tensor<2x3000x2100xi32>
  %l4 = stablehlo.add %l2, %l3 : tensor<2x3000x2100xi32>
  %l7 = stablehlo.add %l4, %li0 : tensor<2x3000x2100xi32>
  %l5 = stablehlo.remainder %l7, %lm : tensor<2x3000x2100xi32>
  %l6 = stablehlo.subtract %l5, %lo : tensor<2x3000x2100xi32>
  %l = stablehlo.convert %l6 : (tensor<2x3000x2100xi32>) -> tensor<2x3000x2100xbf16>
  %ri0 = stablehlo.iota dim = 0 : tensor<2x2100x2100xi32>
  %ri1 = stablehlo.iota dim = 1 : tensor<2x2100x2100xi32>
  %ri2 = stablehlo.iota dim = 2 : tensor<2x2100x2100xi32>
  %ra = stablehlo.constant dense<2> : tensor<2x2100x2100xi32>
  %rb = stablehlo.constant dense<3> : tensor<2x2100x2100xi32>
  %rm = stablehlo.constant dense<5> : tensor<2x2100x2100xi32>
  %ro = stablehlo.constant dense<2> : tensor<2x2100x2100xi32>
  %r2 = stablehlo.multiply %ri1, %ra : tensor<2x2100x2100xi32>
  %r3 = stablehlo.multiply %ri2, %rb : tensor<2x2100x2100xi32>
  %r4 = stablehlo.add %r2, %r3 : tensor<2x2100x2100xi32>
  %r7 = stablehlo.add %r4, %ri0 : tensor<2x2100x2100xi32>
  %r5 = stablehlo.remainder %r7, %rm : tensor<2x2100x2100xi32>
  %r6 = stablehlo.subtract %r5, %ro : tensor<2x2100x2100xi32>
  %r = stablehlo.convert %r6 : (tensor<2x2100x2100xi32>) -> tensor<2x2100x2100xbf16>
  %xi0 = stablehlo.iota dim = 0 : tensor<2x2100x3000xi32>
  %xi1 = stablehlo.iota dim = 1 : tensor<2x2100x3000xi32>
  %xi2 = stablehlo.iota dim = 2 : tensor<2x2100x3000xi32>
  %xa = stablehlo.constant dense<5> : tensor<2x2100x3000xi32>
  %xb = stablehlo.constant dense<3> : tensor<2x2100x3000xi32>
  %xm = stablehlo.constant dense<7> : tensor<2x2100x3000xi32>
  %xo = stablehlo.constant dense<3> : tensor<2x2100x3000xi32>
  %x2 = stablehlo.multiply %xi1, %xa : tensor<2x2100x3000xi32>
  %x3 = stablehlo.multiply %xi2, %xb : tensor<2x2100x3000xi32>
  %x4 = stablehlo.add %x2, %x3 : tensor<2x2100x3000xi32>
  %x7 = stablehlo.add %x4, %xi0 : tensor<2x2100x3000xi32>
  %x5 = stablehlo.remainder %x7, %xm : tensor<2x2100x3000xi32>
  %x6 = stablehlo.subtract %x5, %xo : tensor<2x2100x3000xi32>
  %x = stablehlo.convert %x6 : (tensor<2x2100x3000xi32>) -> tensor<2x2100x3000xbf16>
  %yi0 = stablehlo.iota dim = 0 : tensor<2x2100x2100xi32>
  %yi1 = stablehlo.iota dim = 1 : tensor<2x2100x2100xi32>
  %yi2 = stablehlo.iota dim = 2 : tensor<2x2100x2100xi32>
  %ya = stablehlo.constant dense<3> : tensor<2x2100x2100xi32>
  %yb = stablehlo.constant dense<2> : tensor<2x2100x2100xi32>
  %ym = stablehlo.constant dense<5> : tensor<2x2100x2100xi32>
  %yo = stablehlo.constant dense<2> : tensor<2x2100x2100xi32>
  %y2 = stablehlo.multiply %yi1, %ya : tensor<2x2100x2100xi32>
  %y3 = stablehlo.multiply %yi2, %yb : tensor<2x2100x2100xi32>
  %y4 = stablehlo.add %y2, %y3 : tensor<2x2100x2100xi32>
  %y7 = stablehlo.add %y4, %yi0 : tensor<2x2100x2100xi32>
  %y5 = stablehlo.remainder %y7, %ym : tensor<2x2100x2100xi32>
  %y6 = stablehlo.subtract %y5, %yo : tensor<2x2100x2100xi32>
  %y = stablehlo.convert %y6 : (tensor<2x2100x2100xi32>) -> tensor<2x2100x2100xbf16>
  %got = stablehlo.dot_general %l, %r, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x3000x2100xbf16>, tensor<2x2100x2100xbf16>) -> tensor<2x3000x2100xf32>
  %want = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x2100x3000xbf16>, tensor<2x2100x2100xbf16>) -> tensor<2x3000x2100xf32>
  stablehlo.custom_call @check.expect_eq(%got, %want) {has_side_effect = true} : (tensor<2x3000x2100xf32>, tensor<2x3000x2100xf32>) -> ()
  return
}
