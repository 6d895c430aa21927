// Both operands have their contracted dimension dense, on a chip whose transfers do not transpose: the array turns one of them
// the first time it comes, a transfer stores it so, and later blocks take it from there. The same product of operands that
// lie the other way has the same sums. Small whole numbers: these are exact.
// run: otrn run %s --cache=off --target=trn1
// run: otrn run %s --cache=off --target=trn1 --plan=off --check
// run: otrn compile %s --cache=off --target=trn1 --dump=tile -o %t/a.otrn | grep 'dma dst=scratch.* src=sbuf.* stype=bf16 queue=1'
// expect: dst=scratch
func.func public @main() {
  %l0 = stablehlo.iota dim = 0 : tensor<3000x4200xi32>
  %l1 = stablehlo.iota dim = 1 : tensor<3000x4200xi32>
  %la = stablehlo.constant dense<3> : tensor<3000x4200xi32>
  %lb = stablehlo.constant dense<5> : tensor<3000x4200xi32>
  %lm = stablehlo.constant dense<7> : tensor<3000x4200xi32>
  %lo = stablehlo.constant dense<3> : tensor<3000x4200xi32>
  %l2 = stablehlo.multiply %l0, %la : tensor<3000x4200xi32>
  %l3 = stablehlo.multiply %l1, %lb : tensor<3000x4200xi32>
  %l4 = stablehlo.add %l2, %l3 : tensor<3000x4200xi32>
  %l5 = stablehlo.remainder %l4, %lm : tensor<3000x4200xi32>
  %l6 = stablehlo.subtract %l5, %lo : tensor<3000x4200xi32>
  %l = stablehlo.convert %l6 : (tensor<3000x4200xi32>) -> tensor<3000x4200xbf16>
  %r0 = stablehlo.iota dim = 0 : tensor<2100x4200xi32>
  %r1 = stablehlo.iota dim = 1 : tensor<2100x4200xi32>
  %ra = stablehlo.constant dense<2> : tensor<2100x4200xi32>
  %rb = stablehlo.constant dense<3> : tensor<2100x4200xi32>
  %rm = stablehlo.constant dense<5> : tensor<2100x4200xi32>
  %ro = stablehlo.constant dense<2> : tensor<2100x4200xi32>
  %r2 = stablehlo.multiply %r0, %ra : tensor<2100x4200xi32>
  %r3 = stablehlo.multiply %r1, %rb : tensor<2100x4200xi32>
  %r4 = stablehlo.add %r2, %r3 : tensor<2100x4200xi32>
  %r5 = stablehlo.remainder %r4, %rm : tensor<2100x4200xi32>
  %r6 = stablehlo.subtract %r5, %ro : tensor<2100x4200xi32>
  %r = stablehlo.convert %r6 : (tensor<2100x4200xi32>) -> tensor<2100x4200xbf16>
  %x0 = stablehlo.iota dim = 0 : tensor<4200x3000xi32>
  %x1 = stablehlo.iota dim = 1 : tensor<4200x3000xi32>
  %xa = stablehlo.constant dense<5> : tensor<4200x3000xi32>
  %xb = stablehlo.constant dense<3> : tensor<4200x3000xi32>
  %xm = stablehlo.constant dense<7> : tensor<4200x3000xi32>
  %xo = stablehlo.constant dense<3> : tensor<4200x3000xi32>
  %x2 = stablehlo.multiply %x0, %xa : tensor<4200x3000xi32>
  %x3 = stablehlo.multiply %x1, %xb : tensor<4200x3000xi32>
  %x4 = stablehlo.add %x2, %x3 : tensor<4200x3000xi32>
  %x5 = stablehlo.remainder %x4, %xm : tensor<4200x3000xi32>
  %x6 = stablehlo.subtract %x5, %xo : tensor<4200x3000xi32>
  %x = stablehlo.convert %x6 : (tensor<4200x3000xi32>) -> tensor<4200x3000xbf16>
  %y0 = stablehlo.iota dim = 0 : tensor<4200x2100xi32>
  %y1 = stablehlo.iota dim = 1 : tensor<4200x2100xi32>
  %ya = stablehlo.constant dense<3> : tensor<4200x2100xi32>
  %yb = stablehlo.constant dense<2> : tensor<4200x2100xi32>
  %ym = stablehlo.constant dense<5> : tensor<4200x2100xi32>
  %yo = stablehlo.constant dense<2> : tensor<4200x2100xi32>
  %y2 = stablehlo.multiply %y0, %ya : tensor<4200x2100xi32>
  %y3 = stablehlo.multiply %y1, %yb : tensor<4200x2100xi32>
  %y4 = stablehlo.add %y2, %y3 : tensor<4200x2100xi32>
  %y5 = stablehlo.remainder %y4, %ym : tensor<4200x2100xi32>
  %y6 = stablehlo.subtract %y5, %yo : tensor<4200x2100xi32>
  %y = stablehlo.convert %y6 : (tensor<4200x2100xi32>) -> tensor<4200x2100xbf16>
  %got = stablehlo.dot_general %l, %r, contracting_dims = [1] x [1] : (tensor<3000x4200xbf16>, tensor<2100x4200xbf16>) -> tensor<3000x2100xf32>
  %want = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<4200x3000xbf16>, tensor<4200x2100xbf16>) -> tensor<3000x2100xf32>
  stablehlo.custom_call @check.expect_eq(%got, %want) {has_side_effect = true} : (tensor<3000x2100xf32>, tensor<3000x2100xf32>) -> ()
  return
}
