// erfc that a loop multiplies and puts into a stack of which another loop multiplies pieces is a factor alone: 1 - erf. One that the second loop
// adds is not.
// run: otrn run %s
// run: otrn compile %s --dump=simplify --disable-pass=remat
// expect: "chlo.erfc"(
// expect: "chlo.erf"(
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %x0 = stablehlo.constant dense<0.5> : tensor<64x256xf32>
  %empty = stablehlo.constant dense<0.0> : tensor<2x64x256xf32>
  %f:4 = stablehlo.while(%i = %zero, %x = %x0, %a = %empty, %b = %empty) : tensor<i32>, tensor<64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>
   cond {
    %n = stablehlo.constant dense<2> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %twice = stablehlo.add %x, %x : tensor<64x256xf32>
    %added = chlo.erfc %twice : tensor<64x256xf32> -> tensor<64x256xf32>
    %factor = chlo.erfc %x : tensor<64x256xf32> -> tensor<64x256xf32>
    %next = stablehlo.multiply %x, %factor : tensor<64x256xf32>
    %a0 = stablehlo.reshape %factor : (tensor<64x256xf32>) -> tensor<1x64x256xf32>
    %b0 = stablehlo.reshape %added : (tensor<64x256xf32>) -> tensor<1x64x256xf32>
    %a1 = stablehlo.dynamic_update_slice %a, %a0, %i, %z, %z : (tensor<2x64x256xf32>, tensor<1x64x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x64x256xf32>
    %b1 = stablehlo.dynamic_update_slice %b, %b0, %i, %z, %z : (tensor<2x64x256xf32>, tensor<1x64x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x64x256xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %next, %a1, %b1 : tensor<i32>, tensor<64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>
  }
  %s0 = stablehlo.constant dense<1.0> : tensor<64x256xf32>
  %g:4 = stablehlo.while(%i = %zero, %s = %s0, %a = %f#2, %b = %f#3) : tensor<i32>, tensor<64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>
   cond {
    %n = stablehlo.constant dense<2> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %ai = stablehlo.dynamic_slice %a, %i, %z, %z, sizes = [1, 64, 256] : (tensor<2x64x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x256xf32>
    %bi = stablehlo.dynamic_slice %b, %i, %z, %z, sizes = [1, 64, 256] : (tensor<2x64x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x256xf32>
    %ar = stablehlo.reshape %ai : (tensor<1x64x256xf32>) -> tensor<64x256xf32>
    %br = stablehlo.reshape %bi : (tensor<1x64x256xf32>) -> tensor<64x256xf32>
    %m = stablehlo.multiply %ar, %s : tensor<64x256xf32>
    %t = stablehlo.add %m, %br : tensor<64x256xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %t, %a, %b : tensor<i32>, tensor<64x256xf32>, tensor<2x64x256xf32>, tensor<2x64x256xf32>
  }
  check.expect_almost_eq_const %g#1, dense<0.96546968> : tensor<64x256xf32>
  return
}
