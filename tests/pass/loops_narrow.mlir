// A stack of pieces that the body widens is kept as they were before, and widened by whoever computes with it; one that a result shows
// as it is stays wide, and so does one that does not begin as zeros.
// run: otrn eval %s
// run: otrn run %s --check
// run: otrn run %s --check --lnc=2
// run: otrn run %s --disable-pass=remat
// run: otrn compile %s --dump=remat
// expect: while
// expect: }) : (tensor<i32>, tensor<4x64x128xbf16>, tensor<4x64x128xf32>, tensor<4x64x128xf32>) -> (tensor<i32>, tensor<4x64x128xbf16>, tensor<4x64x128xf32>, tensor<4x64x128xf32>)
// expect: "stablehlo.convert"(%
// expect: (tensor<4x64x128xbf16>) -> tensor<4x64x128xf32>
func.func public @main() -> tensor<4x64x128xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %empty = stablehlo.constant dense<0.0> : tensor<4x64x128xf32>
  %full = stablehlo.constant dense<0.1> : tensor<4x64x128xf32>
  %f:4 = stablehlo.while(%i = %zero, %a = %empty, %b = %empty, %c = %full) : tensor<i32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>
   cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %count = stablehlo.iota dim = 1 : tensor<64x128xf32>
    %third = stablehlo.constant dense<0.3333> : tensor<64x128xf32>
    %row = stablehlo.iota dim = 0 : tensor<64x128xf32>
    %both = stablehlo.add %count, %row : tensor<64x128xf32>
    %x = stablehlo.multiply %both, %third : tensor<64x128xf32>
    %narrow = stablehlo.convert %x : (tensor<64x128xf32>) -> tensor<64x128xbf16>
    %wide = stablehlo.convert %narrow : (tensor<64x128xbf16>) -> tensor<64x128xf32>
    %piece = stablehlo.broadcast_in_dim %wide, dims = [1, 2] : (tensor<64x128xf32>) -> tensor<1x64x128xf32>
    %a1 = stablehlo.dynamic_update_slice %a, %piece, %i, %z, %z : (tensor<4x64x128xf32>, tensor<1x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x64x128xf32>
    %b1 = stablehlo.dynamic_update_slice %b, %piece, %i, %z, %z : (tensor<4x64x128xf32>, tensor<1x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x64x128xf32>
    %c1 = stablehlo.dynamic_update_slice %c, %piece, %i, %z, %z : (tensor<4x64x128xf32>, tensor<1x64x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x64x128xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %a1, %b1, %c1 : tensor<i32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>, tensor<4x64x128xf32>
  }
  %d = stablehlo.subtract %f#1, %f#2 : tensor<4x64x128xf32>
  check.expect_eq_const %d, dense<0.0> : tensor<4x64x128xf32>
  %e = stablehlo.subtract %f#3, %f#2 : tensor<4x64x128xf32>
  %last = stablehlo.slice %e [2:4, 63:64, 127:128] : (tensor<4x64x128xf32>) -> tensor<2x1x1xf32>
  check.expect_eq_const %last, dense<[[[0.0]], [[0.1]]]> : tensor<2x1x1xf32>
  func.return %f#2 : tensor<4x64x128xf32>
}
