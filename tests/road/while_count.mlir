// Loops whose sequencers count: slices and updates at the counter are views, forwards and backwards, in loops inside loops;
// numbers that follow from the counter reach memory only where somebody reads them there.
// run: otrn eval %s
// run: otrn run %s --check
// run: otrn run %s --check --lnc=2
// run: otrn run %s --plan=all --target=trn1
// run: otrn compile %s --dump=tile
// expect: sync: loop
// expect-not: sync: branch
// expect-not: stablehlo.dynamic_slice (
// expect: reg_store
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %x0 = stablehlo.iota dim = 0 : tensor<4608xf32>
  %x = stablehlo.reshape %x0 : (tensor<4608xf32>) -> tensor<6x8x96xf32>
  %empty = stablehlo.constant dense<-1.0> : tensor<6x8x96xf32>
  %count0 = stablehlo.constant dense<7> : tensor<6xi32>
  %sum0 = stablehlo.constant dense<0.0> : tensor<8x96xf32>

  // running sums, forwards; what the counter is goes to memory as well, and where i - 1 would be outside the place is 0
  %f:4 = stablehlo.while(%i = %zero, %s = %sum0, %y = %empty, %c = %count0) : tensor<i32>, tensor<8x96xf32>, tensor<6x8x96xf32>, tensor<6xi32>
   cond {
    %n = stablehlo.constant dense<6> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %xi = stablehlo.dynamic_slice %x, %i, %z, %z, sizes = [1, 8, 96] : (tensor<6x8x96xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x96xf32>
    %xr = stablehlo.reshape %xi : (tensor<1x8x96xf32>) -> tensor<8x96xf32>
    %t = stablehlo.add %s, %xr : tensor<8x96xf32>
    %u = stablehlo.reshape %t : (tensor<8x96xf32>) -> tensor<1x8x96xf32>
    %v = stablehlo.dynamic_update_slice %y, %u, %i, %z, %z : (tensor<6x8x96xf32>, tensor<1x8x96xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<6x8x96xf32>
    %twice = stablehlo.add %i, %i : tensor<i32>
    %w = stablehlo.reshape %twice : (tensor<i32>) -> tensor<1xi32>
    %before = stablehlo.subtract %i, %one : tensor<i32>
    %d = stablehlo.dynamic_update_slice %c, %w, %before : (tensor<6xi32>, tensor<1xi32>, tensor<i32>) -> tensor<6xi32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %t, %v, %d : tensor<i32>, tensor<8x96xf32>, tensor<6x8x96xf32>, tensor<6xi32>
  }
  check.expect_eq_const %f#0, dense<6> : tensor<i32>
  check.expect_eq_const %f#3, dense<[2, 4, 6, 8, 10, 7]> : tensor<6xi32>
  %last = stablehlo.slice %f#2 [5:6, 7:8, 95:96] : (tensor<6x8x96xf32>) -> tensor<1x1x1xf32>
  check.expect_eq_const %last, dense<16122.0> : tensor<1x1x1xf32>
  %third = stablehlo.slice %f#2 [2:3, 0:1, 1:2] : (tensor<6x8x96xf32>) -> tensor<1x1x1xf32>
  check.expect_eq_const %third, dense<2307.0> : tensor<1x1x1xf32>

  // backwards, with a negative index put right as JAX does, inside another loop
  %b:3 = stablehlo.while(%i = %zero, %s = %sum0, %y = %empty) : tensor<i32>, tensor<8x96xf32>, tensor<6x8x96xf32>
   cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LE, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %two = stablehlo.constant dense<2> : tensor<i32>
    %inner:3 = stablehlo.while(%k = %zero, %t = %s, %q = %y) : tensor<i32>, tensor<8x96xf32>, tensor<6x8x96xf32>
     cond {
      %n = stablehlo.constant dense<6> : tensor<i32>
      %p = stablehlo.compare LT, %k, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %five = stablehlo.constant dense<5> : tensor<i32>
      %six = stablehlo.constant dense<6> : tensor<i32>
      %z = stablehlo.constant dense<0> : tensor<i32>
      %m = stablehlo.subtract %five, %k : tensor<i32>
      %neg = stablehlo.compare LT, %m, %z, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %over = stablehlo.add %m, %six : tensor<i32>
      %at = stablehlo.select %neg, %over, %m : tensor<i1>, tensor<i32>
      %xi = stablehlo.dynamic_slice %x, %at, %z, %z, sizes = [1, 8, 96] : (tensor<6x8x96xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x96xf32>
      %xr = stablehlo.reshape %xi : (tensor<1x8x96xf32>) -> tensor<8x96xf32>
      %half = stablehlo.constant dense<0.5> : tensor<8x96xf32>
      %th = stablehlo.multiply %t, %half : tensor<8x96xf32>
      %ts = stablehlo.add %th, %xr : tensor<8x96xf32>
      %if = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
      %ib = stablehlo.broadcast_in_dim %if, dims = [] : (tensor<f32>) -> tensor<8x96xf32>
      %tw = stablehlo.subtract %ts, %ib : tensor<8x96xf32>
      %u = stablehlo.reshape %ts : (tensor<8x96xf32>) -> tensor<1x8x96xf32>
      %v = stablehlo.dynamic_update_slice %q, %u, %at, %z, %z : (tensor<6x8x96xf32>, tensor<1x8x96xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<6x8x96xf32>
      %l = stablehlo.add %one, %k : tensor<i32>
      stablehlo.return %l, %tw, %v : tensor<i32>, tensor<8x96xf32>, tensor<6x8x96xf32>
    }
    %j = stablehlo.add %i, %two : tensor<i32>
    stablehlo.return %j, %inner#1, %inner#2 : tensor<i32>, tensor<8x96xf32>, tensor<6x8x96xf32>
  }
  check.expect_eq_const %b#0, dense<6> : tensor<i32>
  %first = stablehlo.slice %b#2 [0:1, 0:1, 0:1] : (tensor<6x8x96xf32>) -> tensor<1x1x1xf32>
  check.expect_eq_const %first, dense<1385.7724609375> : tensor<1x1x1xf32>
  %mid = stablehlo.slice %b#2 [3:4, 2:3, 5:6] : (tensor<6x8x96xf32>) -> tensor<1x1x1xf32>
  check.expect_eq_const %mid, dense<5364.16796875> : tensor<1x1x1xf32>
  return
}
