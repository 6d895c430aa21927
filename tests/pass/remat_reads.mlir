// The first loop stacks x, every second row of it, and a product that reads far more of x than it gives. The second loop has x: the rows
// would be read and written once more, and all of x read once more for the product. Both are kept.
// run: otrn eval %s
// run: otrn run %s --check
// run: otrn run %s --disable-pass=remat
// run: otrn compile %s --dump=remat
// expect: :5 = "stablehlo.while"
// expect: stablehlo.slice
// expect: dot_general
// expect: :4 = "stablehlo.while"
// expect: #3
// expect: #4
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %x0 = stablehlo.constant dense<0.5> : tensor<32x256x16xf32>
  %ea = stablehlo.constant dense<0.0> : tensor<4x32x256x16xf32>
  %eb = stablehlo.constant dense<0.0> : tensor<4x16x256x16xf32>
  %ec = stablehlo.constant dense<0.0> : tensor<4x32x256xf32>
  %v = stablehlo.constant dense<0.25> : tensor<32x16xf32>
  %f:5 = stablehlo.while(%i = %zero, %x = %x0, %a = %ea, %b = %eb, %c = %ec) : tensor<i32>, tensor<32x256x16xf32>, tensor<4x32x256x16xf32>, tensor<4x16x256x16xf32>, tensor<4x32x256xf32>
   cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %even = stablehlo.slice %x [0:32:2, 0:256, 0:16] : (tensor<32x256x16xf32>) -> tensor<16x256x16xf32>
    %dot = stablehlo.dot_general %x, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<32x256x16xf32>, tensor<32x16xf32>) -> tensor<32x256xf32>
    %next = stablehlo.add %x, %x : tensor<32x256x16xf32>
    %x1 = stablehlo.reshape %x : (tensor<32x256x16xf32>) -> tensor<1x32x256x16xf32>
    %e1 = stablehlo.reshape %even : (tensor<16x256x16xf32>) -> tensor<1x16x256x16xf32>
    %d1 = stablehlo.reshape %dot : (tensor<32x256xf32>) -> tensor<1x32x256xf32>
    %a1 = stablehlo.dynamic_update_slice %a, %x1, %i, %z, %z, %z : (tensor<4x32x256x16xf32>, tensor<1x32x256x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x32x256x16xf32>
    %b1 = stablehlo.dynamic_update_slice %b, %e1, %i, %z, %z, %z : (tensor<4x16x256x16xf32>, tensor<1x16x256x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x16x256x16xf32>
    %c1 = stablehlo.dynamic_update_slice %c, %d1, %i, %z, %z : (tensor<4x32x256xf32>, tensor<1x32x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x32x256xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %next, %a1, %b1, %c1 : tensor<i32>, tensor<32x256x16xf32>, tensor<4x32x256x16xf32>, tensor<4x16x256x16xf32>, tensor<4x32x256xf32>
  }
  %s0 = stablehlo.constant dense<0.0> : tensor<32x256x16xf32>
  %t0 = stablehlo.constant dense<0.0> : tensor<16x256x16xf32>
  %u0 = stablehlo.constant dense<0.0> : tensor<32x256xf32>
  %g:7 = stablehlo.while(%i = %zero, %s = %s0, %t = %t0, %u = %u0, %a = %f#2, %b = %f#3, %c = %f#4) : tensor<i32>, tensor<32x256x16xf32>, tensor<16x256x16xf32>, tensor<32x256xf32>, tensor<4x32x256x16xf32>, tensor<4x16x256x16xf32>, tensor<4x32x256xf32>
   cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %back = stablehlo.subtract %three, %i : tensor<i32>
    %ai = stablehlo.dynamic_slice %a, %back, %z, %z, %z, sizes = [1, 32, 256, 16] : (tensor<4x32x256x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x32x256x16xf32>
    %bi = stablehlo.dynamic_slice %b, %back, %z, %z, %z, sizes = [1, 16, 256, 16] : (tensor<4x16x256x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x256x16xf32>
    %ci = stablehlo.dynamic_slice %c, %back, %z, %z, sizes = [1, 32, 256] : (tensor<4x32x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x32x256xf32>
    %ar = stablehlo.reshape %ai : (tensor<1x32x256x16xf32>) -> tensor<32x256x16xf32>
    %br = stablehlo.reshape %bi : (tensor<1x16x256x16xf32>) -> tensor<16x256x16xf32>
    %cr = stablehlo.reshape %ci : (tensor<1x32x256xf32>) -> tensor<32x256xf32>
    %s1 = stablehlo.subtract %ar, %s : tensor<32x256x16xf32>
    %t1 = stablehlo.subtract %br, %t : tensor<16x256x16xf32>
    %u1 = stablehlo.subtract %cr, %u : tensor<32x256xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %s1, %t1, %u1, %a, %b, %c : tensor<i32>, tensor<32x256x16xf32>, tensor<16x256x16xf32>, tensor<32x256xf32>, tensor<4x32x256x16xf32>, tensor<4x16x256x16xf32>, tensor<4x32x256xf32>
  }
  %s2 = stablehlo.slice %g#1 [3:4, 2:3, 1:2] : (tensor<32x256x16xf32>) -> tensor<1x1x1xf32>
  %t2 = stablehlo.slice %g#2 [3:4, 2:3, 1:2] : (tensor<16x256x16xf32>) -> tensor<1x1x1xf32>
  %u2 = stablehlo.slice %g#3 [3:4, 2:3] : (tensor<32x256xf32>) -> tensor<1x1xf32>
  check.expect_eq_const %s2, dense<-2.5> : tensor<1x1x1xf32>
  check.expect_eq_const %t2, dense<-2.5> : tensor<1x1x1xf32>
  check.expect_eq_const %u2, dense<-10.0> : tensor<1x1xf32>
  func.return
}
