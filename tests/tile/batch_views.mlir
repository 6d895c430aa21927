// Many small products read slices of a stack where they lie, by a register in the address.
// run: otrn eval %s
// run: otrn run %s --check
// run: otrn run %s --check --lnc=2
// run: otrn compile %s --target=trn2 --lnc=1 --dump=nest
// expect: dot dot_general
// expect-not: dynamic_slice
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %w = stablehlo.iota dim = 0 : tensor<4x64x32x32xf32>
  %x0 = stablehlo.constant dense<0.125> : tensor<64x32x32xf32>
  %f:2 = stablehlo.while(%i = %zero, %x = %x0) : tensor<i32>, tensor<64x32x32xf32>
   cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %back = stablehlo.subtract %three, %i : tensor<i32>
    %wi = stablehlo.dynamic_slice %w, %back, %z, %z, %z, sizes = [1, 64, 32, 32] : (tensor<4x64x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x32x32xf32>
    %wr = stablehlo.reshape %wi : (tensor<1x64x32x32xf32>) -> tensor<64x32x32xf32>
    %d = stablehlo.dot_general %x0, %wr, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<64x32x32xf32>, tensor<64x32x32xf32>) -> tensor<64x32x32xf32>
    %y = stablehlo.add %x, %d : tensor<64x32x32xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %y : tensor<i32>, tensor<64x32x32xf32>
  }
  check.expect_eq_const %f#1, dense<24.125> : tensor<64x32x32xf32>
  return
}
