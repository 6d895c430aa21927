// A stack that a loop writes as a whole, piece by piece, does not get what it begins with; one that lacks a piece does.
// run: otrn eval %s
// run: otrn run %s --check
// run: otrn run %s --check --lnc=2
// run: otrn compile %s --dump=tile
// expect-not: e0c0
// expect: a0c0
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %x0 = stablehlo.iota dim = 0 : tensor<4608xf32>
  %x = stablehlo.reshape %x0 : (tensor<4608xf32>) -> tensor<6x8x96xf32>
  %all0 = stablehlo.constant dense<-7.0> : tensor<6x8x96xf32>
  %most0 = stablehlo.constant dense<-5.0> : tensor<7x8x96xf32>
  %f:3 = stablehlo.while(%i = %zero, %all = %all0, %most = %most0) : tensor<i32>, tensor<6x8x96xf32>, tensor<7x8x96xf32>
   cond {
    %n = stablehlo.constant dense<6> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %five = stablehlo.constant dense<5> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %xi = stablehlo.dynamic_slice %x, %i, %z, %z, sizes = [1, 8, 96] : (tensor<6x8x96xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x96xf32>
    %t = stablehlo.add %xi, %xi : tensor<1x8x96xf32>
    %u = stablehlo.multiply %xi, %xi : tensor<1x8x96xf32>
    %back = stablehlo.subtract %five, %i : tensor<i32>
    %v = stablehlo.dynamic_update_slice %all, %t, %back, %z, %z : (tensor<6x8x96xf32>, tensor<1x8x96xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<6x8x96xf32>
    %w = stablehlo.dynamic_update_slice %most, %u, %i, %z, %z : (tensor<7x8x96xf32>, tensor<1x8x96xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<7x8x96xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %v, %w : tensor<i32>, tensor<6x8x96xf32>, tensor<7x8x96xf32>
  }
  %turned = stablehlo.reverse %f#1, dims = [0] : tensor<6x8x96xf32>
  %twice = stablehlo.add %x, %x : tensor<6x8x96xf32>
  stablehlo.custom_call @check.expect_eq(%turned, %twice) {has_side_effect = true} : (tensor<6x8x96xf32>, tensor<6x8x96xf32>) -> ()
  %last = stablehlo.slice %f#2 [6:7, 7:8, 95:96] : (tensor<7x8x96xf32>) -> tensor<1x1x1xf32>
  check.expect_eq_const %last, dense<-5.0> : tensor<1x1x1xf32>
  return
}
