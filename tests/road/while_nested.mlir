// Loops inside loops; values from outside that are read inside; a splat constant needed in the inner loop,
// in the outer loop and after both; a loop that runs zero times.
// run: otrn eval %s
// run: otrn run %s
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %big = stablehlo.constant dense<0.5> : tensor<300xf32>
  %start = stablehlo.constant dense<0.0> : tensor<300xf32>
  %scale = stablehlo.iota dim = 0 : tensor<300xf32>
  %twice = stablehlo.add %scale, %scale : tensor<300xf32>
  %r:2 = stablehlo.while(%i = %zero, %x = %start) : tensor<i32>, tensor<300xf32>
   cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %in:2 = stablehlo.while(%k = %zero, %y = %x) : tensor<i32>, tensor<300xf32>
     cond {
      %p = stablehlo.compare LT, %k, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %t = stablehlo.multiply %twice, %big : tensor<300xf32>
      %u = stablehlo.add %y, %t : tensor<300xf32>
      %l = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %l, %u : tensor<i32>, tensor<300xf32>
    }
    %v = stablehlo.add %in#1, %big : tensor<300xf32>
    %w = stablehlo.add %v, %big : tensor<300xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %w : tensor<i32>, tensor<300xf32>
  }
  // three times the inner term, three times one
  %three = stablehlo.constant dense<3.0> : tensor<300xf32>
  %a = stablehlo.multiply %scale, %three : tensor<300xf32>
  %want = stablehlo.add %a, %three : tensor<300xf32>
  stablehlo.custom_call @check.expect_eq(%r#1, %want) {has_side_effect = true} : (tensor<300xf32>, tensor<300xf32>) -> ()
  %none:2 = stablehlo.while(%i = %zero, %x = %big) : tensor<i32>, tensor<300xf32>
   cond {
    %p = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %nine = stablehlo.constant dense<9.0> : tensor<300xf32>
    stablehlo.return %i, %nine : tensor<i32>, tensor<300xf32>
  }
  stablehlo.custom_call @check.expect_eq(%none#1, %big) {has_side_effect = true} : (tensor<300xf32>, tensor<300xf32>) -> ()
  return
}
