// The first loop stacks what it makes of x for the second one: of x, which is carried, twice of it, and its exponential. Only x is
// kept, and the rest computed again; what others read stays. The mask that both pass on is no longer carried.
// run: otrn eval %s
// run: otrn run %s --check
// run: otrn run %s --check --lnc=2
// run: otrn run %s --disable-pass=remat
// run: otrn run %s --disable-pass=loops
// run: otrn compile %s --dump=remat
// expect: :3 = "stablehlo.while"
// expect: :2 = "stablehlo.while"
// expect: dynamic_slice
// expect: exponential
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %x0 = stablehlo.constant dense<0.5> : tensor<64x2048xf32>
  %empty = stablehlo.constant dense<0.0> : tensor<8x64x2048xf32>
  %row = stablehlo.iota dim = 0 : tensor<64x2048xi32>
  %col = stablehlo.iota dim = 1 : tensor<64x2048xi32>
  %mask = stablehlo.compare GE, %row, %col, SIGNED : (tensor<64x2048xi32>, tensor<64x2048xi32>) -> tensor<64x2048xi1>
  %f:5 = stablehlo.while(%i = %zero, %x = %x0, %a = %empty, %b = %empty, %m = %mask) : tensor<i32>, tensor<64x2048xf32>, tensor<8x64x2048xf32>, tensor<8x64x2048xf32>, tensor<64x2048xi1>
   cond {
    %n = stablehlo.constant dense<8> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %twice = stablehlo.add %x, %x : tensor<64x2048xf32>
    %exp = stablehlo.exponential %x : tensor<64x2048xf32>
    %next = stablehlo.select %m, %twice, %x : tensor<64x2048xi1>, tensor<64x2048xf32>
    %t1 = stablehlo.reshape %twice : (tensor<64x2048xf32>) -> tensor<1x64x2048xf32>
    %e1 = stablehlo.reshape %exp : (tensor<64x2048xf32>) -> tensor<1x64x2048xf32>
    %a1 = stablehlo.dynamic_update_slice %a, %t1, %i, %z, %z : (tensor<8x64x2048xf32>, tensor<1x64x2048xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x64x2048xf32>
    %b1 = stablehlo.dynamic_update_slice %b, %e1, %i, %z, %z : (tensor<8x64x2048xf32>, tensor<1x64x2048xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x64x2048xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %next, %a1, %b1, %m : tensor<i32>, tensor<64x2048xf32>, tensor<8x64x2048xf32>, tensor<8x64x2048xf32>, tensor<64x2048xi1>
  }
  %s0 = stablehlo.constant dense<0.0> : tensor<64x2048xf32>
  %g:4 = stablehlo.while(%i = %zero, %s = %s0, %a = %f#2, %b = %f#3) : tensor<i32>, tensor<64x2048xf32>, tensor<8x64x2048xf32>, tensor<8x64x2048xf32>
   cond {
    %n = stablehlo.constant dense<8> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %seven = stablehlo.constant dense<7> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %back = stablehlo.subtract %seven, %i : tensor<i32>
    %ai = stablehlo.dynamic_slice %a, %back, %z, %z, sizes = [1, 64, 2048] : (tensor<8x64x2048xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x2048xf32>
    %bi = stablehlo.dynamic_slice %b, %back, %z, %z, sizes = [1, 64, 2048] : (tensor<8x64x2048xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x2048xf32>
    %ar = stablehlo.reshape %ai : (tensor<1x64x2048xf32>) -> tensor<64x2048xf32>
    %br = stablehlo.reshape %bi : (tensor<1x64x2048xf32>) -> tensor<64x2048xf32>
    %c = stablehlo.subtract %ar, %s : tensor<64x2048xf32>
    %smaller = stablehlo.minimum %br, %ar : tensor<64x2048xf32>
    %t = stablehlo.add %c, %smaller : tensor<64x2048xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %t, %a, %b : tensor<i32>, tensor<64x2048xf32>, tensor<8x64x2048xf32>, tensor<8x64x2048xf32>
  }
  %in = stablehlo.slice %g#1 [3:4, 2:3] : (tensor<64x2048xf32>) -> tensor<1x1xf32>
  check.expect_eq_const %in, dense<-170.0> : tensor<1x1xf32>
  %out = stablehlo.slice %g#1 [3:4, 4:5] : (tensor<64x2048xf32>) -> tensor<1x1xf32>
  check.expect_eq_const %out, dense<0.0> : tensor<1x1xf32>
  return
}
