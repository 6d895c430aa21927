// In a loop two small row programs that read the same rows are one, as every iteration waits for the transfers of each; outside they stay two.
// run: otrn compile %s --cache=off --target=trn2 -o %t/a.otrn --dump=join > %t/text && grep -c '"otrn.rows"' %t/text
// expect: 3
// run: otrn run %t/a.otrn --check --output=%t/a && otrn run %s --cache=off --disable-pass=join --output=%t/b && for i in 0 1 2; do cmp %t/a/result_$i.npy %t/b/result_$i.npy || exit 1; done
func.func @main() -> (tensor<8x64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %eight = stablehlo.constant dense<8> : tensor<i32>
  %s = stablehlo.constant dense<0.0> : tensor<8x64x64xf32>
  %i0 = stablehlo.iota dim = 0 : tensor<64x64xf32>
  %x = stablehlo.dot_general %i0, %i0, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = stablehlo.transpose %x, dims = [1, 0] : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %r:3 = stablehlo.while(%i = %zero, %h = %x, %k = %s) : tensor<i32>, tensor<64x64xf32>, tensor<8x64x64xf32>
    cond {
      %c = stablehlo.compare LT, %i, %eight : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %e = stablehlo.tanh %h : tensor<64x64xf32>
      %f = stablehlo.multiply %e, %y : tensor<64x64xf32>
      %w = stablehlo.reshape %f : (tensor<64x64xf32>) -> tensor<1x64x64xf32>
      %u = stablehlo.dynamic_update_slice %k, %w, %i, %zero, %zero : (tensor<8x64x64xf32>, tensor<1x64x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x64x64xf32>
      %a = stablehlo.add %h, %y : tensor<64x64xf32>
      %l = stablehlo.logistic %a : tensor<64x64xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %l, %u : tensor<i32>, tensor<64x64xf32>, tensor<8x64x64xf32>
    }
  %p = stablehlo.tanh %y : tensor<64x64xf32>
  %q = stablehlo.logistic %r#1 : tensor<64x64xf32>
  %t = stablehlo.multiply %q, %y : tensor<64x64xf32>
  return %r#2, %p, %t : tensor<8x64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
}
