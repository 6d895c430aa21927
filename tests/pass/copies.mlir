// A loop stacks up what it carries, beside a program that reads it: that program stores the copy, in the stack's own memory. What no
// row program reads is copied as before.
// run: otrn eval %s
// run: otrn run %s --check
// run: otrn run %s --check --lnc=2
// run: otrn run %s --disable-pass=copies
// run: otrn compile %s --dump=nest -o %t/out.otrn | grep -c dynamic_update_slice
// expect: 1
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %row = stablehlo.iota dim = 0 : tensor<512x1024xf32>
  %col = stablehlo.iota dim = 1 : tensor<512x1024xf32>
  %hundredth = stablehlo.constant dense<0.0078125> : tensor<512x1024xf32>
  %sum = stablehlo.add %row, %col : tensor<512x1024xf32>
  %x0 = stablehlo.multiply %sum, %hundredth : tensor<512x1024xf32>
  %empty = stablehlo.constant dense<0.0> : tensor<3x512x1024xf32>
  %f:5 = stablehlo.while(%i = %zero, %x = %x0, %y = %x0, %a = %empty, %b = %empty) : tensor<i32>, tensor<512x1024xf32>, tensor<512x1024xf32>, tensor<3x512x1024xf32>, tensor<3x512x1024xf32>
   cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %piece = stablehlo.reshape %x : (tensor<512x1024xf32>) -> tensor<1x512x1024xf32>
    %a1 = stablehlo.dynamic_update_slice %a, %piece, %i, %z, %z : (tensor<3x512x1024xf32>, tensor<1x512x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x512x1024xf32>
    %other = stablehlo.reshape %y : (tensor<512x1024xf32>) -> tensor<1x512x1024xf32>
    %b1 = stablehlo.dynamic_update_slice %b, %other, %i, %z, %z : (tensor<3x512x1024xf32>, tensor<1x512x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x512x1024xf32>
    %most = stablehlo.reduce(%x init: %none) applies stablehlo.maximum across dimensions = [1] : (tensor<512x1024xf32>, tensor<f32>) -> tensor<512xf32>
    %wide = stablehlo.broadcast_in_dim %most, dims = [0] : (tensor<512xf32>) -> tensor<512x1024xf32>
    %next = stablehlo.subtract %wide, %x : tensor<512x1024xf32>
    %back = stablehlo.reverse %y, dims = [1] : tensor<512x1024xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %next, %back, %a1, %b1 : tensor<i32>, tensor<512x1024xf32>, tensor<512x1024xf32>, tensor<3x512x1024xf32>, tensor<3x512x1024xf32>
  }
  %a0 = stablehlo.slice %f#3 [0:1, 0:512, 0:1024] : (tensor<3x512x1024xf32>) -> tensor<1x512x1024xf32>
  %a2 = stablehlo.slice %f#3 [2:3, 0:512, 0:1024] : (tensor<3x512x1024xf32>) -> tensor<1x512x1024xf32>
  %b0 = stablehlo.slice %f#4 [0:1, 0:512, 0:1024] : (tensor<3x512x1024xf32>) -> tensor<1x512x1024xf32>
  %b2 = stablehlo.slice %f#4 [2:3, 0:512, 0:1024] : (tensor<3x512x1024xf32>) -> tensor<1x512x1024xf32>
  %first = stablehlo.reshape %x0 : (tensor<512x1024xf32>) -> tensor<1x512x1024xf32>
  %d0 = stablehlo.subtract %a0, %first : tensor<1x512x1024xf32>
  %d1 = stablehlo.subtract %b0, %first : tensor<1x512x1024xf32>
  %d2 = stablehlo.subtract %b2, %first : tensor<1x512x1024xf32>
  check.expect_eq_const %d0, dense<0.0> : tensor<1x512x1024xf32>
  check.expect_eq_const %d1, dense<0.0> : tensor<1x512x1024xf32>
  check.expect_eq_const %d2, dense<0.0> : tensor<1x512x1024xf32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.reduce(%x0 init: %none) applies stablehlo.maximum across dimensions = [1] : (tensor<512x1024xf32>, tensor<f32>) -> tensor<512xf32>
  %again = stablehlo.broadcast_in_dim %least, dims = [0] : (tensor<512xf32>) -> tensor<512x1024xf32>
  %x1 = stablehlo.subtract %again, %x0 : tensor<512x1024xf32>
  %least1 = stablehlo.reduce(%x1 init: %none) applies stablehlo.maximum across dimensions = [1] : (tensor<512x1024xf32>, tensor<f32>) -> tensor<512xf32>
  %again1 = stablehlo.broadcast_in_dim %least1, dims = [0] : (tensor<512xf32>) -> tensor<512x1024xf32>
  %x2 = stablehlo.subtract %again1, %x1 : tensor<512x1024xf32>
  %third = stablehlo.reshape %x2 : (tensor<512x1024xf32>) -> tensor<1x512x1024xf32>
  %d3 = stablehlo.subtract %a2, %third : tensor<1x512x1024xf32>
  check.expect_eq_const %d3, dense<0.0> : tensor<1x512x1024xf32>
  return
}
