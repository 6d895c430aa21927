// What is the same in every iteration stands before the loop once no row program took it along: one table, spread
// over heads, for two loops and the products behind them.
// run: otrn eval %s
// run: otrn run %s --check
// run: otrn run %s --check --lnc=2
// run: otrn run %s --disable-pass=hoist
// run: echo $(otrn compile %s --dump=fuse -o %t/a.otrn | grep -c broadcast_in_dim) $(otrn compile %s --dump=hoist -o %t/b.otrn | grep -c broadcast_in_dim)
// expect: 6 4
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %number = stablehlo.iota dim = 0 : tensor<128xf32>
  %small = stablehlo.constant dense<0.0078125> : tensor<128xf32>
  %table = stablehlo.multiply %number, %small : tensor<128xf32>
  %x0 = stablehlo.constant dense<0.0078125> : tensor<4x128x128xf32>
  %f:2 = stablehlo.while(%i = %zero, %x = %x0) : tensor<i32>, tensor<4x128x128xf32>
   cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %t = stablehlo.broadcast_in_dim %table, dims = [1] : (tensor<128xf32>) -> tensor<4x128x128xf32>
    %y = stablehlo.dot_general %x, %t, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x128x128xf32>, tensor<4x128x128xf32>) -> tensor<4x128x128xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %y : tensor<i32>, tensor<4x128x128xf32>
  }
  %g:2 = stablehlo.while(%i = %zero, %x = %f#1) : tensor<i32>, tensor<4x128x128xf32>
   cond {
    %n = stablehlo.constant dense<2> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %t = stablehlo.broadcast_in_dim %table, dims = [1] : (tensor<128xf32>) -> tensor<4x128x128xf32>
    %y = stablehlo.dot_general %t, %x, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x128x128xf32>, tensor<4x128x128xf32>) -> tensor<4x128x128xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %y : tensor<i32>, tensor<4x128x128xf32>
  }
  %t = stablehlo.broadcast_in_dim %table, dims = [1] : (tensor<128xf32>) -> tensor<4x128x128xf32>
  %y1 = stablehlo.dot_general %x0, %t, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x128x128xf32>, tensor<4x128x128xf32>) -> tensor<4x128x128xf32>
  %y2 = stablehlo.dot_general %y1, %t, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x128x128xf32>, tensor<4x128x128xf32>) -> tensor<4x128x128xf32>
  %y3 = stablehlo.dot_general %y2, %t, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x128x128xf32>, tensor<4x128x128xf32>) -> tensor<4x128x128xf32>
  %y4 = stablehlo.dot_general %t, %y3, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x128x128xf32>, tensor<4x128x128xf32>) -> tensor<4x128x128xf32>
  %y5 = stablehlo.dot_general %t, %y4, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x128x128xf32>, tensor<4x128x128xf32>) -> tensor<4x128x128xf32>
  %d = stablehlo.subtract %g#1, %y5 : tensor<4x128x128xf32>
  check.expect_eq_const %d, dense<0.0> : tensor<4x128x128xf32>
  return
}
