// Scores of 160 rows fill a tile and a quarter of one, which takes transfers as long as a whole one: storing and reading them on trn3 takes longer
// than making them again.
// run: otrn compile %s --dump=remat --target=trn3 --cache=off -o %t/a.otrn
// expect: %2:3 = "stablehlo.while"
func.func public @main(%x0: tensor<16x160x64xbf16>) -> tensor<16x160x160xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %ea = stablehlo.constant dense<0.0> : tensor<4x16x160x64xbf16>
  %eb = stablehlo.constant dense<0.0> : tensor<4x16x160x160xf32>
  %f:4 = stablehlo.while(%i = %zero, %x = %x0, %a = %ea, %b = %eb) : tensor<i32>, tensor<16x160x64xbf16>, tensor<4x16x160x64xbf16>, tensor<4x16x160x160xf32>
   cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %s = stablehlo.dot_general %x, %x, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<16x160x64xbf16>, tensor<16x160x64xbf16>) -> tensor<16x160x160xf32>
    %e = stablehlo.exponential %s : tensor<16x160x160xf32>
    %next = stablehlo.add %x, %x : tensor<16x160x64xbf16>
    %x1 = stablehlo.reshape %x : (tensor<16x160x64xbf16>) -> tensor<1x16x160x64xbf16>
    %e1 = stablehlo.reshape %e : (tensor<16x160x160xf32>) -> tensor<1x16x160x160xf32>
    %a1 = stablehlo.dynamic_update_slice %a, %x1, %i, %z, %z, %z : (tensor<4x16x160x64xbf16>, tensor<1x16x160x64xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x16x160x64xbf16>
    %b1 = stablehlo.dynamic_update_slice %b, %e1, %i, %z, %z, %z : (tensor<4x16x160x160xf32>, tensor<1x16x160x160xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x16x160x160xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %next, %a1, %b1 : tensor<i32>, tensor<16x160x64xbf16>, tensor<4x16x160x64xbf16>, tensor<4x16x160x160xf32>
  }
  %s0 = stablehlo.constant dense<0.0> : tensor<16x160x160xf32>
  %t0 = stablehlo.constant dense<0.0> : tensor<16x160x64xbf16>
  %g:5 = stablehlo.while(%i = %zero, %s = %s0, %t = %t0, %a = %f#2, %b = %f#3) : tensor<i32>, tensor<16x160x160xf32>, tensor<16x160x64xbf16>, tensor<4x16x160x64xbf16>, tensor<4x16x160x160xf32>
   cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %back = stablehlo.subtract %three, %i : tensor<i32>
    %ai = stablehlo.dynamic_slice %a, %back, %z, %z, %z, sizes = [1, 16, 160, 64] : (tensor<4x16x160x64xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x160x64xbf16>
    %bi = stablehlo.dynamic_slice %b, %back, %z, %z, %z, sizes = [1, 16, 160, 160] : (tensor<4x16x160x160xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x160x160xf32>
    %ar = stablehlo.reshape %ai : (tensor<1x16x160x64xbf16>) -> tensor<16x160x64xbf16>
    %br = stablehlo.reshape %bi : (tensor<1x16x160x160xf32>) -> tensor<16x160x160xf32>
    %t1 = stablehlo.subtract %ar, %t : tensor<16x160x64xbf16>
    %s1 = stablehlo.subtract %br, %s : tensor<16x160x160xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %s1, %t1, %a, %b : tensor<i32>, tensor<16x160x160xf32>, tensor<16x160x64xbf16>, tensor<4x16x160x64xbf16>, tensor<4x16x160x160xf32>
  }
  return %g#1 : tensor<16x160x160xf32>
}
