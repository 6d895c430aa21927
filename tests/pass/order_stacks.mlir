// What goes into a loop's stack nobody waits for, however near the stack's update stands: the product that reads a piece of the weights for
// the next iteration goes before the one whose result updates it.
// run: otrn compile %s --cache=off --target=trn2 --lnc=1 --dump=nest --disable-pass=hoist
// expect: loop while
// expect: k(192:1:1)
// expect: k(256:160:192)
// expect: end while
// run: otrn run %s --check
// run: otrn run %s --check --lnc=2
func.func @main() {
  %o = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %i0 = stablehlo.iota dim = 0 : tensor<92160xf32>
  %i1 = stablehlo.sine %i0 : tensor<92160xf32>
  %w = stablehlo.reshape %i1 : (tensor<92160xf32>) -> tensor<3x160x192xf32>
  %x0 = stablehlo.slice %i1 [5:40965] : (tensor<92160xf32>) -> tensor<40960xf32>
  %x = stablehlo.reshape %x0 : (tensor<40960xf32>) -> tensor<256x160xf32>
  %y0 = stablehlo.slice %i1 [11:49163] : (tensor<92160xf32>) -> tensor<49152xf32>
  %y = stablehlo.reshape %y0 : (tensor<49152xf32>) -> tensor<256x192xf32>
  %r:3 = stablehlo.while(%i = %o, %ws = %w, %dx = %x) : tensor<i32>, tensor<3x160x192xf32>, tensor<256x160xf32>
    cond {
      %go = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %p0 = stablehlo.dynamic_slice %ws, %i, %o, %o, sizes = [1, 160, 192] : (tensor<3x160x192xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x160x192xf32>
      %p = stablehlo.reshape %p0 : (tensor<1x160x192xf32>) -> tensor<160x192xf32>
      %dw = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<256x160xf32>, tensor<256x192xf32>) -> tensor<160x192xf32>
      %e = stablehlo.dot_general %y, %p, contracting_dims = [1] x [1] : (tensor<256x192xf32>, tensor<160x192xf32>) -> tensor<256x160xf32>
      %n = stablehlo.subtract %p, %dw : tensor<160x192xf32>
      %n1 = stablehlo.reshape %n : (tensor<160x192xf32>) -> tensor<1x160x192xf32>
      %ws1 = stablehlo.dynamic_update_slice %ws, %n1, %i, %o, %o : (tensor<3x160x192xf32>, tensor<1x160x192xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x160x192xf32>
      %d = stablehlo.add %e, %dx : tensor<256x160xf32>
      %i2 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %i2, %ws1, %d : tensor<i32>, tensor<3x160x192xf32>, tensor<256x160xf32>
    }
  // the second piece alone
  %q0 = stablehlo.slice %w [1:2, 0:160, 0:192] : (tensor<3x160x192xf32>) -> tensor<1x160x192xf32>
  %q = stablehlo.reshape %q0 : (tensor<1x160x192xf32>) -> tensor<160x192xf32>
  %dq = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<256x160xf32>, tensor<256x192xf32>) -> tensor<160x192xf32>
  %nq = stablehlo.subtract %q, %dq : tensor<160x192xf32>
  %u0 = stablehlo.slice %r#1 [1:2, 0:160, 0:192] : (tensor<3x160x192xf32>) -> tensor<1x160x192xf32>
  %u = stablehlo.reshape %u0 : (tensor<1x160x192xf32>) -> tensor<160x192xf32>
  check.expect_eq %u, %nq : tensor<160x192xf32>
  return
}
