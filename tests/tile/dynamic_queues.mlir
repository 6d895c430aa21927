// What a loop stacks up goes by several queues, two by two: one begins a transfer now and then only.
// run: otrn compile %s --cache=off --target=trn2 --lnc=1 --dump=tile
// expect: loop
// expect: queue=10
// expect: queue=10
// expect: queue=11
// expect: endloop
// run: otrn run %s --check --output=%t/a && otrn eval %s --output=%t/b && for i in 0 1 2 3 4; do cmp %t/a/result_$i.npy %t/b/result_$i.npy || exit 1; done
func.func @main() -> (tensor<40x64xf32>, tensor<40x64xf32>, tensor<40x64xf32>, tensor<40x64xf32>, tensor<40x64xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %last = stablehlo.constant dense<40> : tensor<i32>
  %s = stablehlo.constant dense<0.0> : tensor<40x64xf32>
  %x = stablehlo.iota dim = 0 : tensor<64xf32>
  %r:7 = stablehlo.while(%i = %zero, %h = %x, %s0 = %s, %s1 = %s, %s2 = %s, %s3 = %s, %s4 = %s) : tensor<i32>, tensor<64xf32>, tensor<40x64xf32>, tensor<40x64xf32>, tensor<40x64xf32>, tensor<40x64xf32>, tensor<40x64xf32>
    cond {
      %c = stablehlo.compare LT, %i, %last : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %v0 = stablehlo.negate %h : tensor<64xf32>
      %w0 = stablehlo.reshape %v0 : (tensor<64xf32>) -> tensor<1x64xf32>
      %v1 = stablehlo.add %v0, %x : tensor<64xf32>
      %w1 = stablehlo.reshape %v1 : (tensor<64xf32>) -> tensor<1x64xf32>
      %v2 = stablehlo.abs %v1 : tensor<64xf32>
      %w2 = stablehlo.reshape %v2 : (tensor<64xf32>) -> tensor<1x64xf32>
      %v3 = stablehlo.subtract %v2, %x : tensor<64xf32>
      %w3 = stablehlo.reshape %v3 : (tensor<64xf32>) -> tensor<1x64xf32>
      %v4 = stablehlo.maximum %v3, %h : tensor<64xf32>
      %w4 = stablehlo.reshape %v4 : (tensor<64xf32>) -> tensor<1x64xf32>
      %u0 = stablehlo.dynamic_update_slice %s0, %w0, %i, %zero : (tensor<40x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<40x64xf32>
      %u1 = stablehlo.dynamic_update_slice %s1, %w1, %i, %zero : (tensor<40x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<40x64xf32>
      %u2 = stablehlo.dynamic_update_slice %s2, %w2, %i, %zero : (tensor<40x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<40x64xf32>
      %u3 = stablehlo.dynamic_update_slice %s3, %w3, %i, %zero : (tensor<40x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<40x64xf32>
      %u4 = stablehlo.dynamic_update_slice %s4, %w4, %i, %zero : (tensor<40x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<40x64xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %v4, %u0, %u1, %u2, %u3, %u4 : tensor<i32>, tensor<64xf32>, tensor<40x64xf32>, tensor<40x64xf32>, tensor<40x64xf32>, tensor<40x64xf32>, tensor<40x64xf32>
    }
  return %r#2, %r#3, %r#4, %r#5, %r#6 : tensor<40x64xf32>, tensor<40x64xf32>, tensor<40x64xf32>, tensor<40x64xf32>, tensor<40x64xf32>
}
