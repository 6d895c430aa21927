// Flags of dropout that one loop stacks up for a later one are drawn again there: the generator's state, two words, is kept in their place. The
// uniform numbers are made as jax.random.uniform makes them between two bounds, here 0 and 1.
// run: otrn compile %s --lnc=1 --dump=remat > %t/remat && grep -c 'otrn.draw.*64x2048xi1' %t/remat && ! grep 'tensor<8x64x2048xi1>' %t/remat && grep -q 'tensor<8x2xui64>' %t/remat
// expect: 2
// run: otrn run %s --check --output=%t/a && otrn eval %s --output=%t/b && cmp %t/a/result_0.npy %t/b/result_0.npy
// run: otrn run %s --disable-pass=remat --output=%t/c && cmp %t/a/result_0.npy %t/c/result_0.npy
// run: otrn run %s --target=trn1 --output=%t/d && cmp %t/a/result_0.npy %t/d/result_0.npy
// run: otrn run %s --lnc=2 --check --output=%t/e && cmp %t/a/result_0.npy %t/e/result_0.npy
func.func public @main() -> tensor<64x2048xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %x0 = stablehlo.constant dense<0.5> : tensor<64x2048xf32>
  %empty = stablehlo.constant dense<false> : tensor<8x64x2048xi1>
  %key0 = stablehlo.constant dense<[7, 2654435769]> : tensor<2xui64>
  %key = stablehlo.optimization_barrier %key0 : tensor<2xui64>
  %f:4 = stablehlo.while(%i = %zero, %x = %x0, %k = %key, %a = %empty) : tensor<i32>, tensor<64x2048xf32>, tensor<2xui64>, tensor<8x64x2048xi1>
   cond {
    %n = stablehlo.constant dense<8> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %next, %bits = stablehlo.rng_bit_generator %k, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<64x2048xui32>)
    %nine = stablehlo.constant dense<9> : tensor<64x2048xui32>
    %upper = stablehlo.shift_right_logical %bits, %nine : tensor<64x2048xui32>
    %ones = stablehlo.constant dense<1065353216> : tensor<64x2048xui32>
    %joined = stablehlo.or %upper, %ones : tensor<64x2048xui32>
    %from1 = stablehlo.bitcast_convert %joined : (tensor<64x2048xui32>) -> tensor<64x2048xf32>
    %c1 = stablehlo.constant dense<1.0> : tensor<64x2048xf32>
    %c0 = stablehlo.constant dense<0.0> : tensor<64x2048xf32>
    %from0 = stablehlo.subtract %from1, %c1 : tensor<64x2048xf32>
    %wide = stablehlo.multiply %from0, %c1 : tensor<64x2048xf32>
    %moved = stablehlo.add %wide, %c0 : tensor<64x2048xf32>
    %uniform = stablehlo.maximum %c0, %moved : tensor<64x2048xf32>
    %chance = stablehlo.constant dense<0.75> : tensor<64x2048xf32>
    %flag = stablehlo.compare LT, %uniform, %chance, FLOAT : (tensor<64x2048xf32>, tensor<64x2048xf32>) -> tensor<64x2048xi1>
    %twice = stablehlo.add %x, %x : tensor<64x2048xf32>
    %y = stablehlo.select %flag, %twice, %x : tensor<64x2048xi1>, tensor<64x2048xf32>
    %f1 = stablehlo.reshape %flag : (tensor<64x2048xi1>) -> tensor<1x64x2048xi1>
    %a1 = stablehlo.dynamic_update_slice %a, %f1, %i, %z, %z : (tensor<8x64x2048xi1>, tensor<1x64x2048xi1>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x64x2048xi1>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %y, %next, %a1 : tensor<i32>, tensor<64x2048xf32>, tensor<2xui64>, tensor<8x64x2048xi1>
  }
  %g:3 = stablehlo.while(%i = %zero, %s = %f#1, %a = %f#3) : tensor<i32>, tensor<64x2048xf32>, tensor<8x64x2048xi1>
   cond {
    %n = stablehlo.constant dense<8> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %seven = stablehlo.constant dense<7> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %back = stablehlo.subtract %seven, %i : tensor<i32>
    %ai = stablehlo.dynamic_slice %a, %back, %z, %z, sizes = [1, 64, 2048] : (tensor<8x64x2048xi1>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x2048xi1>
    %ar = stablehlo.reshape %ai : (tensor<1x64x2048xi1>) -> tensor<64x2048xi1>
    %half = stablehlo.constant dense<0.25> : tensor<64x2048xf32>
    %less = stablehlo.multiply %s, %half : tensor<64x2048xf32>
    %t = stablehlo.select %ar, %less, %s : tensor<64x2048xi1>, tensor<64x2048xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %t, %a : tensor<i32>, tensor<64x2048xf32>, tensor<8x64x2048xi1>
  }
  return %g#1 : tensor<64x2048xf32>
}
