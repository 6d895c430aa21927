// Scores that a product gives in another order than they are stacked in: turning them costs nothing, because the product can give
// them so (pass turns), and the second loop computes them again.
// run: otrn eval %s
// run: otrn run %s --check
// run: otrn run %s --disable-pass=remat
// run: otrn compile %s --dump=remat
// expect: "stablehlo.while"
// expect: "stablehlo.while"
// expect: "stablehlo.dot_general"
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %x0 = stablehlo.constant dense<0.125> : tensor<2x512x16xf32>
  %empty = stablehlo.constant dense<0.0> : tensor<4x2x512x512xf32>
  %f:3 = stablehlo.while(%i = %zero, %x = %x0, %a = %empty) : tensor<i32>, tensor<2x512x16xf32>, tensor<4x2x512x512xf32>
   cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %row = stablehlo.iota dim = 1 : tensor<2x512x16xf32>
    %y = stablehlo.add %x, %row : tensor<2x512x16xf32>
    %s = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x512x16xf32>, tensor<2x512x16xf32>) -> tensor<2x512x512xf32>
    %t = stablehlo.transpose %s, dims = [0, 2, 1] : (tensor<2x512x512xf32>) -> tensor<2x512x512xf32>
    %e = stablehlo.negate %t : tensor<2x512x512xf32>
    %e1 = stablehlo.reshape %e : (tensor<2x512x512xf32>) -> tensor<1x2x512x512xf32>
    %a1 = stablehlo.dynamic_update_slice %a, %e1, %i, %z, %z, %z : (tensor<4x2x512x512xf32>, tensor<1x2x512x512xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x2x512x512xf32>
    %next = stablehlo.add %x, %x : tensor<2x512x16xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %next, %a1 : tensor<i32>, tensor<2x512x16xf32>, tensor<4x2x512x512xf32>
  }
  %s0 = stablehlo.constant dense<0.0> : tensor<2x512xf32>
  %g:3 = stablehlo.while(%i = %zero, %s = %s0, %a = %f#2) : tensor<i32>, tensor<2x512xf32>, tensor<4x2x512x512xf32>
   cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %back = stablehlo.subtract %three, %i : tensor<i32>
    %ai = stablehlo.dynamic_slice %a, %back, %z, %z, %z, sizes = [1, 2, 512, 512] : (tensor<4x2x512x512xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x512x512xf32>
    %ar = stablehlo.reshape %ai : (tensor<1x2x512x512xf32>) -> tensor<2x512x512xf32>
    %sum = stablehlo.reduce(%ar init: %none) applies stablehlo.add across dimensions = [2] : (tensor<2x512x512xf32>, tensor<f32>) -> tensor<2x512xf32>
    %t = stablehlo.add %s, %sum : tensor<2x512xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %t, %a : tensor<i32>, tensor<2x512xf32>, tensor<4x2x512x512xf32>
  }
  %some = stablehlo.slice %g#1 [1:2, 0:2] : (tensor<2x512xf32>) -> tensor<1x2xf32>
  check.expect_eq_const %some, dense<[[-10880.0, -26240.0]]> : tensor<1x2xf32>
  return
}
