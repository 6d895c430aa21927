// rng: every op of a run draws new numbers, also in a loop; a run draws the same ones as the run before; bounds hold.
// run: otrn eval %s > %t/a && otrn run %s > %t/b && otrn run %s --disable-pass=cse > %t/c && cmp %t/a %t/b && cmp %t/b %t/c
// run: otrn run %s
// expect: tensor<4xi8>: 46 32 91 -14
func.func public @main() -> (tensor<4xi8>, tensor<3xf32>, tensor<3xf32>, tensor<3xbf16>, tensor<2xui64>, tensor<3xf32>) {
  %m = stablehlo.constant dense<-100> : tensor<i8>
  %p = stablehlo.constant dense<100> : tensor<i8>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %n4 = stablehlo.constant dense<4> : tensor<1xi64>
  %n3 = stablehlo.constant dense<3> : tensor<1xi64>
  %n2 = stablehlo.constant dense<2> : tensor<1xi64>
  %big = stablehlo.constant dense<4096> : tensor<1xi64>
  %unused0 = stablehlo.rng %zero, %one, %n3, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32>
  %unused1 = stablehlo.rng %zero, %one, %n3, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32>
  %a = stablehlo.rng %m, %p, %n4, distribution = UNIFORM : (tensor<i8>, tensor<i8>, tensor<1xi64>) -> tensor<4xi8>
  %b = stablehlo.rng %zero, %one, %n3, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32>
  %c = stablehlo.rng %zero, %one, %n3, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32>
  %lo = stablehlo.constant dense<2.0> : tensor<bf16>
  %hi = stablehlo.constant dense<2.03125> : tensor<bf16>
  %d = stablehlo.rng %lo, %hi, %n3, distribution = UNIFORM : (tensor<bf16>, tensor<bf16>, tensor<1xi64>) -> tensor<3xbf16>
  %u0 = stablehlo.constant dense<0> : tensor<ui64>
  %u1 = stablehlo.constant dense<18446744073709551615> : tensor<ui64>
  %e = stablehlo.rng %u0, %u1, %n2, distribution = UNIFORM : (tensor<ui64>, tensor<ui64>, tensor<1xi64>) -> tensor<2xui64>
  // a loop that draws three times: the sum of three different draws
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %i1 = stablehlo.constant dense<1> : tensor<i32>
  %i3 = stablehlo.constant dense<3> : tensor<i32>
  %f0 = stablehlo.constant dense<0.0> : tensor<3xf32>
  %l:2 = stablehlo.while(%i = %i0, %s = %f0) : tensor<i32>, tensor<3xf32>
   cond {
    %go = stablehlo.compare LT, %i, %i3 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %r = stablehlo.rng %zero, %one, %n3, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32>
    %t = stablehlo.add %s, %r : tensor<3xf32>
    %j = stablehlo.add %i, %i1 : tensor<i32>
    stablehlo.return %j, %t : tensor<i32>, tensor<3xf32>
  }
  // 4096 normal numbers of mean 3 and deviation 2: the means of z and z * z are near 0 and 1
  %three = stablehlo.constant dense<3.0> : tensor<f32>
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %x = stablehlo.rng %three, %two, %big, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4096xf32>
  %xm = stablehlo.broadcast_in_dim %three, dims = [] : (tensor<f32>) -> tensor<4096xf32>
  %xd = stablehlo.broadcast_in_dim %two, dims = [] : (tensor<f32>) -> tensor<4096xf32>
  %x1 = stablehlo.subtract %x, %xm : tensor<4096xf32>
  %z = stablehlo.divide %x1, %xd : tensor<4096xf32>
  %zz = stablehlo.multiply %z, %z : tensor<4096xf32>
  %sz = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4096xf32>, tensor<f32>) -> tensor<f32>
  %szz = stablehlo.reduce(%zz init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4096xf32>, tensor<f32>) -> tensor<f32>
  %count = stablehlo.constant dense<4096.0> : tensor<f32>
  %mean = stablehlo.divide %sz, %count : tensor<f32>
  %square = stablehlo.divide %szz, %count : tensor<f32>
  check.expect_almost_eq_const %mean, dense<0.0> : tensor<f32> {tolerance = 0.05 : f32}
  check.expect_almost_eq_const %square, dense<1.0> : tensor<f32> {tolerance = 0.1 : f32}
  return %a, %b, %c, %d, %e, %l#1 : tensor<4xi8>, tensor<3xf32>, tensor<3xf32>, tensor<3xbf16>, tensor<2xui64>, tensor<3xf32>
}
