// What a body stacks up and goes on with is made in the stack: no copy of it.
// run: otrn eval %s
// run: otrn run %s --check
// run: otrn run %s --check --lnc=2
// run: otrn compile %s --dump=tile
// expect: sync: loop
// expect-not: op=stablehlo.dynamic_update_slice
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %x0 = stablehlo.constant dense<1.0> : tensor<128x512xf32>
  %empty = stablehlo.constant dense<0.0> : tensor<4x128x512xf32>
  %f:3 = stablehlo.while(%i = %zero, %x = %x0, %y = %empty) : tensor<i32>, tensor<128x512xf32>, tensor<4x128x512xf32>
   cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %w = stablehlo.constant dense<0.001953125> : tensor<512x512xf32>
    %t = stablehlo.add %x, %x : tensor<128x512xf32>
    %next = stablehlo.dot_general %t, %w, contracting_dims = [1] x [0] : (tensor<128x512xf32>, tensor<512x512xf32>) -> tensor<128x512xf32>
    %u = stablehlo.reshape %t : (tensor<128x512xf32>) -> tensor<1x128x512xf32>
    %v = stablehlo.dynamic_update_slice %y, %u, %i, %z, %z : (tensor<4x128x512xf32>, tensor<1x128x512xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x128x512xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %next, %v : tensor<i32>, tensor<128x512xf32>, tensor<4x128x512xf32>
  }
  %in = stablehlo.slice %f#2 [3:4, 7:8, 95:96] : (tensor<4x128x512xf32>) -> tensor<1x1x1xf32>
  check.expect_eq_const %in, dense<16.0> : tensor<1x1x1xf32>
  %out = stablehlo.slice %f#1 [7:8, 95:96] : (tensor<128x512xf32>) -> tensor<1x1xf32>
  check.expect_eq_const %out, dense<16.0> : tensor<1x1xf32>
  return
}
