// Where a product has its operands in HBM and its slots in SBUF: two kept sides beside each other, results behind what is left.
// run: otrn compile %s --dump=placed --target=trn1
// expect: # 0 dot dot_general: %1 %2 -> %3
// expect: in0 arg0[0] 131072 bytes
// expect: out0 result0[0] 262144 bytes
// expect: ring slots
// expect: sbuf[0]
// expect: ring slots
// expect: ring outs 2 x 8192 bytes: sbuf[65536] sbuf[73728]
// run: otrn compile %s --dump=placed,tile --target=trn1
// expect: // --- after placed
// expect: // --- after tile
func.func @main(%x: tensor<256x256xbf16>, %w: tensor<256x256xbf16>) -> tensor<256x256xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<256x256xbf16>, tensor<256x256xbf16>) -> tensor<256x256xf32>
  return %0 : tensor<256x256xf32>
}
