// Integers of four bits from a file: as ml_dtypes writes them, with any top bits, or in numpy's own bytes when they fit.
// run: otrn eval %s --input=%S/data/int4_3.npy
// run: otrn run %s --input=%S/data/int4_3.npy
// run: otrn run %s --input=%S/data/i8_3.npy
// run: otrn run %s --input=%S/data/i8_big.npy
// status: 1
// expect: result 0: tensor<3xi32>: -7 7 -1
// expect: result 0: tensor<3xi32>: -7 7 -1
// expect: result 0: tensor<3xi32>: -7 7 -1
// expect: i8_big.npy: error[ARGUMENT]: argument 0 is tensor<3xi4>, the file holds numbers beyond it
func.func public @main(%x: tensor<3xi4>) -> tensor<3xi32> {
  %0 = stablehlo.convert %x : (tensor<3xi4>) -> tensor<3xi32>
  return %0 : tensor<3xi32>
}
