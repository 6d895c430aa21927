// A bias of each layer is converted in every iteration: all of them are, before the loop, and the body reads the pieces. Large weights, whose
// conversion takes as long either way, are converted where they are read; so is what the loop carries.
// run: otrn eval %s
// run: otrn run %s --check
// run: otrn run %s --check --lnc=2
// run: otrn run %s --disable-pass=pieces
// run: otrn compile %s --dump=pieces -o %t/out.otrn | grep -e 'stablehlo.convert' -e 'stablehlo.while'
// expect: (tensor<3x512xf32>) -> tensor<3x512xbf16>
// expect: stablehlo.while
// expect: (tensor<512x512xf32>) -> tensor<512x512xbf16>
// expect: (tensor<512xf32>) -> tensor<512xbf16>
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %number = stablehlo.iota dim = 1 : tensor<3x512xf32>
  %layer = stablehlo.iota dim = 0 : tensor<3x512xf32>
  %some = stablehlo.constant dense<0.337> : tensor<3x512xf32>
  %b0 = stablehlo.multiply %number, %some : tensor<3x512xf32>
  %bias = stablehlo.add %b0, %layer : tensor<3x512xf32>
  %row = stablehlo.iota dim = 1 : tensor<3x512x512xf32>
  %third = stablehlo.constant dense<0.0003> : tensor<3x512x512xf32>
  %weights = stablehlo.multiply %row, %third : tensor<3x512x512xf32>
  %empty = stablehlo.constant dense<0.0> : tensor<3x512xf32>
  %x0 = stablehlo.constant dense<0.01> : tensor<256x512xbf16>
  %f:4 = stablehlo.while(%i = %zero, %x = %x0, %old = %empty, %all = %empty) : tensor<i32>, tensor<256x512xbf16>, tensor<3x512xf32>, tensor<3x512xf32>
   cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %bp = stablehlo.dynamic_slice %bias, %i, %z, sizes = [1, 512] : (tensor<3x512xf32>, tensor<i32>, tensor<i32>) -> tensor<1x512xf32>
    %b = stablehlo.reshape %bp : (tensor<1x512xf32>) -> tensor<512xf32>
    %bn = stablehlo.convert %b : (tensor<512xf32>) -> tensor<512xbf16>
    %wp = stablehlo.dynamic_slice %weights, %i, %z, %z, sizes = [1, 512, 512] : (tensor<3x512x512xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x512x512xf32>
    %w = stablehlo.reshape %wp : (tensor<1x512x512xf32>) -> tensor<512x512xf32>
    %wn = stablehlo.convert %w : (tensor<512x512xf32>) -> tensor<512x512xbf16>
    %op = stablehlo.dynamic_slice %old, %i, %z, sizes = [1, 512] : (tensor<3x512xf32>, tensor<i32>, tensor<i32>) -> tensor<1x512xf32>
    %o = stablehlo.reshape %op : (tensor<1x512xf32>) -> tensor<512xf32>
    %on = stablehlo.convert %o : (tensor<512xf32>) -> tensor<512xbf16>
    %y = stablehlo.dot_general %x, %wn, contracting_dims = [1] x [0] : (tensor<256x512xbf16>, tensor<512x512xbf16>) -> tensor<256x512xbf16>
    %wide = stablehlo.broadcast_in_dim %bn, dims = [1] : (tensor<512xbf16>) -> tensor<256x512xbf16>
    %y1 = stablehlo.add %y, %wide : tensor<256x512xbf16>
    %owide = stablehlo.broadcast_in_dim %on, dims = [1] : (tensor<512xbf16>) -> tensor<256x512xbf16>
    %y2 = stablehlo.add %y1, %owide : tensor<256x512xbf16>
    %next = stablehlo.tanh %y2 : tensor<256x512xbf16>
    %back = stablehlo.convert %bn : (tensor<512xbf16>) -> tensor<512xf32>
    %piece = stablehlo.reshape %back : (tensor<512xf32>) -> tensor<1x512xf32>
    %all1 = stablehlo.dynamic_update_slice %all, %piece, %i, %z : (tensor<3x512xf32>, tensor<1x512xf32>, tensor<i32>, tensor<i32>) -> tensor<3x512xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %old1 = stablehlo.dynamic_update_slice %old, %piece, %j, %z : (tensor<3x512xf32>, tensor<1x512xf32>, tensor<i32>, tensor<i32>) -> tensor<3x512xf32>
    stablehlo.return %j, %next, %old1, %all1 : tensor<i32>, tensor<256x512xbf16>, tensor<3x512xf32>, tensor<3x512xf32>
  }
  %narrow = stablehlo.convert %bias : (tensor<3x512xf32>) -> tensor<3x512xbf16>
  %again = stablehlo.convert %narrow : (tensor<3x512xbf16>) -> tensor<3x512xf32>
  %d = stablehlo.subtract %f#3, %again : tensor<3x512xf32>
  check.expect_eq_const %d, dense<0.0> : tensor<3x512xf32>
  return
}
