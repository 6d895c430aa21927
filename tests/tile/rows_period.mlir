// Short rows lie side by side in a partition: here 16, as many as an operand repeats after, so that one transfer brings it to all partitions. With eight, as many as
// fill the partitions, there would be one for every two of these.
// run: otrn compile %s --cache=off --target=trn2 --lnc=1 --dump=tile | grep -c 'dma dst=sbuf'
// expect: 2
// run: otrn eval %S/data/rows_period_in.mlir --output=%t && export IN=--input=%t/result_0.npy,%t/result_1.npy && otrn run %s $IN --check --output=%t/a && otrn eval %s $IN --output=%t/b && cmp %t/a/result_0.npy %t/b/result_0.npy
func.func @main(%x: tensor<64x16x1xf32>, %y: tensor<16x16xf32>) -> tensor<64x16x16xf32> {
  %a = stablehlo.broadcast_in_dim %x, dims = [0, 1, 2] : (tensor<64x16x1xf32>) -> tensor<64x16x16xf32>
  %b = stablehlo.broadcast_in_dim %y, dims = [1, 2] : (tensor<16x16xf32>) -> tensor<64x16x16xf32>
  %c = stablehlo.add %a, %b : tensor<64x16x16xf32>
  return %c : tensor<64x16x16xf32>
}
