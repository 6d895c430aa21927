// A short loop of elementwise work is taken apart: what goes round in it is known in each turn. Captured values stay. A long one
// stays a loop.
// run: otrn eval %s
// run: otrn run %s
// run: otrn run %s --disable-pass=unroll
// run: test $(otrn compile %s --dump=unroll | grep -c stablehlo.while) = 1
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %a = stablehlo.constant dense<[13, 15]> : tensor<2xui32>
  %b = stablehlo.constant dense<[17, 29]> : tensor<2xui32>
  %x0 = stablehlo.constant dense<[1, 2, 3]> : tensor<3xui32>
  %r:4 = stablehlo.while(%i = %zero, %x = %x0, %p = %a, %q = %b) : tensor<i32>, tensor<3xui32>, tensor<2xui32>, tensor<2xui32>
   cond {
    %n = stablehlo.constant dense<5> : tensor<i32>
    %t = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  } do {
    %s1 = stablehlo.slice %p [1:2] : (tensor<2xui32>) -> tensor<1xui32>
    %s2 = stablehlo.reshape %s1 : (tensor<1xui32>) -> tensor<ui32>
    %s3 = stablehlo.broadcast_in_dim %s2, dims = [] : (tensor<ui32>) -> tensor<3xui32>
    %y = stablehlo.shift_left %x, %s3 : tensor<3xui32>
    %z = stablehlo.xor %y, %x : tensor<3xui32>
    %w = stablehlo.add %z, %x0 : tensor<3xui32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %w, %q, %p : tensor<i32>, tensor<3xui32>, tensor<2xui32>, tensor<2xui32>
  }
  check.expect_eq_const %r#0, dense<5> : tensor<i32>
  check.expect_eq_const %r#1, dense<[229382, 458764, 163858]> : tensor<3xui32>
  check.expect_eq_const %r#2, dense<[17, 29]> : tensor<2xui32>

  // a narrow counter
  %c0 = stablehlo.constant dense<121> : tensor<i8>
  %f0 = stablehlo.constant dense<0.0> : tensor<f32>
  %l:2 = stablehlo.while(%i = %c0, %x = %f0) : tensor<i8>, tensor<f32>
   cond {
    %n = stablehlo.constant dense<125> : tensor<i8>
    %t = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  } do {
    %two = stablehlo.constant dense<5> : tensor<i8>
    %half = stablehlo.constant dense<0.5> : tensor<f32>
    %y = stablehlo.add %x, %half : tensor<f32>
    %j = stablehlo.add %i, %two : tensor<i8>
    stablehlo.return %j, %y : tensor<i8>, tensor<f32>
  }
  check.expect_eq_const %l#1, dense<0.5> : tensor<f32>
  check.expect_eq_const %l#0, dense<126> : tensor<i8>

  %many:2 = stablehlo.while(%i = %zero, %x = %f0) : tensor<i32>, tensor<f32>
   cond {
    %n = stablehlo.constant dense<100> : tensor<i32>
    %t = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  } do {
    %half = stablehlo.constant dense<0.5> : tensor<f32>
    %y = stablehlo.add %x, %half : tensor<f32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %y : tensor<i32>, tensor<f32>
  }
  check.expect_eq_const %many#1, dense<50.0> : tensor<f32>
  return
}
