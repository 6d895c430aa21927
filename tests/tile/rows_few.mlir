// Two long rows are cut into 128 short ones, with an operand that both have; with a sum along them, or one number a row, they stay whole.
// run: otrn eval %S/data/rows_few_in.mlir --output=%t/in >%t/log
// run: for t in trn1 trn2 trn3; do otrn run %s --target=$t --cache=off --check --input=%t/in/result_0.npy,%t/in/result_1.npy,%t/in/result_2.npy --output=%t/$t >%t/log || exit 1; done
// run: otrn eval %s --input=%t/in/result_0.npy,%t/in/result_1.npy,%t/in/result_2.npy --output=%t/eval >%t/log
// run: for i in 0 1; do for t in trn1 trn2 trn3; do cmp %t/eval/result_$i.npy %t/$t/result_$i.npy || exit 1; done; done; echo same bits
// expect: same bits
// run: otrn compile %s --target=trn2 --lnc=1 --cache=off --dump=tile -o %t/a.otrn | grep -e 'op0=maximum.*n0' -e 'op1=minimum.*n0'
// expect: op0=maximum n0=128 n1=64
// expect: op1=minimum atype=f32 n0=2 n1=4096
func.func public @main(%x: tensor<2x4096xf32>, %b: tensor<4096xf32>, %c: tensor<2xf32>) -> (tensor<2x4096xf32>, tensor<2x4096xf32>) {
  %w = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<4096xf32>) -> tensor<2x4096xf32>
  %p = stablehlo.multiply %x, %w : tensor<2x4096xf32>
  %q = stablehlo.maximum %p, %w : tensor<2x4096xf32>
  %r = stablehlo.broadcast_in_dim %c, dims = [0] : (tensor<2xf32>) -> tensor<2x4096xf32>
  %s = stablehlo.multiply %x, %r : tensor<2x4096xf32>
  %u = stablehlo.minimum %s, %x : tensor<2x4096xf32>
  return %q, %u : tensor<2x4096xf32>, tensor<2x4096xf32>
}
