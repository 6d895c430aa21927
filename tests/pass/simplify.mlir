// What moves or changes nothing goes: broadcasts and transposes that only add or move dimensions of size one, chains of
// either, neutral elements, a reduction over dimensions of size one, known predicates, transposes before and after a
// product. x / 3 is not x * (1 / 3) and stays. Same bits with and without the pass; tests/unit/simplify_test.c holds every rule to its row.
// run: otrn compile %s --dump=dce --cache=off -o %t/a.otrn > %t/a.mlir && otrn compile %s --disable-pass=simplify --cache=off -o %t/b.otrn
// run: grep -c 'stablehlo.transpose\|stablehlo.broadcast_in_dim\|stablehlo.select\|stablehlo.maximum' %t/a.mlir || true
// expect: 0
// run: grep -c 'stablehlo.divide\|stablehlo.add' %t/a.mlir
// expect: 3
// run: otrn run %t/a.otrn --input=%S/data/x_4x6.npy --output=%t/a && otrn run %t/b.otrn --input=%S/data/x_4x6.npy --output=%t/b
// run: for i in 0 1 2 3; do cmp %t/a/result_$i.npy %t/b/result_$i.npy || exit 1; done
func.func public @main(%x: tensor<4x6xf32>) -> (tensor<1x4x1x6xf32>, tensor<6x4xf32>, tensor<6x6xf32>, tensor<4x6xf32>) {
  %wide = stablehlo.broadcast_in_dim %x, dims = [1, 3] : (tensor<4x6xf32>) -> tensor<1x4x1x6xf32>
  %moved = stablehlo.transpose %wide, dims = [2, 1, 0, 3] : (tensor<1x4x1x6xf32>) -> tensor<1x4x1x6xf32>
  %minus = stablehlo.constant dense<-0.0> : tensor<1x4x1x6xf32>
  %same = stablehlo.add %moved, %minus : tensor<1x4x1x6xf32>
  %zeros = stablehlo.constant dense<0.0> : tensor<1x4x1x6xf32>
  %r0 = stablehlo.add %same, %zeros : tensor<1x4x1x6xf32>
  %yes = stablehlo.constant dense<true> : tensor<4x6xi1>
  %low = stablehlo.constant dense<0xFF800000> : tensor<4x6xf32>
  %three = stablehlo.constant dense<3.0> : tensor<4x6xf32>
  %eight = stablehlo.constant dense<-8.0> : tensor<4x6xf32>
  %p = stablehlo.select %yes, %x, %low : tensor<4x6xi1>, tensor<4x6xf32>
  %q = stablehlo.maximum %low, %p : tensor<4x6xf32>
  %third = stablehlo.divide %q, %three : tensor<4x6xf32>
  %eighth = stablehlo.divide %third, %eight : tensor<4x6xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %cube = stablehlo.reshape %eighth : (tensor<4x6xf32>) -> tensor<4x1x6x1xf32>
  %flat = stablehlo.reduce(%cube init: %zero) applies stablehlo.add across dimensions = [1, 3] : (tensor<4x1x6x1xf32>, tensor<f32>) -> tensor<4x6xf32>
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %r2 = stablehlo.dot_general %t, %x, contracting_dims = [1] x [0] : (tensor<6x4xf32>, tensor<4x6xf32>) -> tensor<6x6xf32>
  %dot2 = stablehlo.dot_general %x, %r2, contracting_dims = [1] x [1] : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
  %r1 = stablehlo.transpose %dot2, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  return %r0, %r1, %r2, %flat : tensor<1x4x1x6xf32>, tensor<6x4xf32>, tensor<6x6xf32>, tensor<4x6xf32>
}
