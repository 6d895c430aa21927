// Stores that fill a piece of memory side by side, each on the next queue, wait for what they store and not for each other; the one that meets bytes of them
// again, in the next iteration of the loop, does. --check finds an access that no wait orders.
// run: otrn run %s --lnc=1 --check
// run: otrn run %s --lnc=2 --check
// run: otrn compile %s --lnc=1 --dump=tile -o %t/a.otrn | sed -n '/ loop /,/endloop/p' | grep 'n0=128 n1=2 wait' | sed 's/.*queue=/queue=/'
// expect: queue=9 n0=128 n1=2 wait(vector-0)
// expect: queue=8 n0=128 n1=2 wait(vector-0)
// expect-not: wait(vector-0, q
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %k = stablehlo.iota dim = 1 : tensor<2048x16xf32>
  %l = stablehlo.iota dim = 0 : tensor<16x512xf32>
  %x = stablehlo.dot_general %k, %l, contracting_dims = [1] x [0] : (tensor<2048x16xf32>, tensor<16x512xf32>) -> tensor<2048x512xf32>
  %s0 = stablehlo.constant dense<0.0> : tensor<2048xf32>
  %r:3 = stablehlo.while(%i = %zero, %f = %z, %s = %s0) : tensor<i32>, tensor<f32>, tensor<2048xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %onef = stablehlo.constant dense<1.0> : tensor<f32>
    %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<2048x512xf32>
    %y = stablehlo.add %x, %b : tensor<2048x512xf32>
    %t = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2048x512xf32>, tensor<f32>) -> tensor<2048xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %g = stablehlo.add %f, %onef : tensor<f32>
    stablehlo.return %j, %g, %t : tensor<i32>, tensor<f32>, tensor<2048xf32>
  }
  check.expect_eq_const %r#2, dense<635904.0> : tensor<2048xf32>
  return
}
