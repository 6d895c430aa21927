// A sum that stands before the product of the same rows, its reshape right behind it on the way into a loop's stack, is part of that product
// all the same: nobody waits for what goes into a stack.
// run: otrn run %s --check
// run: otrn run %s --check --lnc=2
// run: otrn run %s --target=trn3 --host=portable --threads=1
// run: otrn compile %s --cache=off --target=trn2 --lnc=1 --dump=nest
// expect: loop
// expect: product f32 -> f32 in0[0] in1[0] -> out0[0] k(256:160:192) m(160:1:192) n(192:1:1)
// expect: product f32 -> f32 in2[0] in1[0] -> out1[0] k(256:1:192) m(1:1:1) n(192:1:1)
// expect: end
func.func @main() {
  %zf = stablehlo.constant dense<0.0> : tensor<f32>
  %o = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %i0 = stablehlo.iota dim = 0 : tensor<147472xf32>
  %i1 = stablehlo.sine %i0 : tensor<147472xf32>
  %p0 = stablehlo.slice %i1 [5:40965] : (tensor<147472xf32>) -> tensor<40960xf32>
  %p = stablehlo.reshape %p0 : (tensor<40960xf32>) -> tensor<256x160xf32>
  %q0 = stablehlo.slice %i1 [11:147467] : (tensor<147472xf32>) -> tensor<147456xf32>
  %q = stablehlo.reshape %q0 : (tensor<147456xf32>) -> tensor<3x256x192xf32>
  %sw = stablehlo.constant dense<0.0> : tensor<3x160x192xf32>
  %sb = stablehlo.constant dense<0.0> : tensor<3x192xf32>
  %r:3 = stablehlo.while(%i = %o, %ws = %sw, %bs = %sb) : tensor<i32>, tensor<3x160x192xf32>, tensor<3x192xf32>
    cond {
      %go = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %a0 = stablehlo.dynamic_slice %q, %i, %o, %o, sizes = [1, 256, 192] : (tensor<3x256x192xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x256x192xf32>
      %a1 = stablehlo.reshape %a0 : (tensor<1x256x192xf32>) -> tensor<256x192xf32>
      %a = stablehlo.tanh %a1 : tensor<256x192xf32>
      %lb = stablehlo.reduce(%a init: %zf) applies stablehlo.add across dimensions = [0] : (tensor<256x192xf32>, tensor<f32>) -> tensor<192xf32>
      %lb1 = stablehlo.reshape %lb : (tensor<192xf32>) -> tensor<1x192xf32>
      %lw = stablehlo.dot_general %p, %a, contracting_dims = [0] x [0] : (tensor<256x160xf32>, tensor<256x192xf32>) -> tensor<160x192xf32>
      %lw1 = stablehlo.reshape %lw : (tensor<160x192xf32>) -> tensor<1x160x192xf32>
      %ws1 = stablehlo.dynamic_update_slice %ws, %lw1, %i, %o, %o : (tensor<3x160x192xf32>, tensor<1x160x192xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x160x192xf32>
      %bs1 = stablehlo.dynamic_update_slice %bs, %lb1, %i, %o : (tensor<3x192xf32>, tensor<1x192xf32>, tensor<i32>, tensor<i32>) -> tensor<3x192xf32>
      %i1n = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %i1n, %ws1, %bs1 : tensor<i32>, tensor<3x160x192xf32>, tensor<3x192xf32>
    }
  %qt = stablehlo.tanh %q : tensor<3x256x192xf32>
  %qe = stablehlo.reduce(%qt init: %zf) applies stablehlo.add across dimensions = [1] : (tensor<3x256x192xf32>, tensor<f32>) -> tensor<3x192xf32>
  check.expect_eq %r#2, %qe : tensor<3x192xf32>
  return
}
