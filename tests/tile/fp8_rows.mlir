// Products of fp8: from trn2 on two tiles of k go through the array at once, an odd last one alone; rows are turned by the array, because transfers turn no
// bytes. The same bits on every chip.
// run: for t in trn1 trn2 trn3; do otrn compile %s --target=$t --lnc=1 --cache=off -o %t/$t.otrn; otrn dis %t/$t.otrn >%t/$t.s; grep -c 'matmul.*double_row' %t/$t.s; grep -c 'matmul' %t/$t.s; grep -c 'tensor: transpose' %t/$t.s; done
// expect: 0
// expect: 9
// expect: 9
// expect: 4
// expect: 5
// expect: 9
// expect: 4
// expect: 5
// expect: 9
// run: echo 'func.func @main() -> (tensor<128x1152xf32>, tensor<1152x256xf32>) { %%0 = stablehlo.iota dim = 1 : tensor<128x1152xf32> %%1 = stablehlo.iota dim = 0 : tensor<1152x256xf32> %%2 = stablehlo.sine %%0 : tensor<128x1152xf32> %%3 = stablehlo.cosine %%1 : tensor<1152x256xf32> return %%2, %%3 : tensor<128x1152xf32>, tensor<1152x256xf32> }' >%t/gen.mlir; otrn eval %t/gen.mlir --output=%t/in >%t/log
// run: for t in trn1 trn2 trn3; do otrn run %t/$t.otrn --check --input=%t/in/result_0.npy,%t/in/result_1.npy --output=%t/$t >%t/log || exit 1; done; cmp %t/trn1/result_0.npy %t/trn2/result_0.npy && cmp %t/trn1/result_0.npy %t/trn3/result_0.npy
func.func public @main(%x: tensor<128x1152xf32>, %w: tensor<1152x256xf32>) -> tensor<128x256xf32> {
  %a = stablehlo.convert %x : (tensor<128x1152xf32>) -> tensor<128x1152xf8E5M2>
  %b = stablehlo.convert %w : (tensor<1152x256xf32>) -> tensor<1152x256xf8E5M2>
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<128x1152xf8E5M2>, tensor<1152x256xf8E5M2>) -> tensor<128x256xf32>
  return %r : tensor<128x256xf32>
}
