// Dropout: flags come out of the program that makes the random bits (pass/draws.c), a byte each, with rotations on all three engines. Causal
// attention reads those of half of its columns, so that the others are not made: rows of three heads side by side. Numbers are the evaluator's
// and a kernel's, on one core or two, on a chip whose engines share a port; bounds at the edges of what a uniform number can be, which is made of 23 bits or 24.
// run: otrn compile %s --cache=off --lnc=1 -o %t/a.otrn --dump=tile > %t/tile && grep 'gpsimd: iota' %t/tile && grep 'dtype=ui8' %t/tile
// expect: n1=3 n2=128
// expect: scalar: tensor_copy
// run: grep 'stype=ui16' %t/tile
// expect: scalar: activation
// expect: gpsimd: tensor_tensor
// run: otrn compile %s --cache=off -o %t/b.otrn --dump=draws
// expect: UNSIGNED
// run: otrn run %t/a.otrn --check --output=%t/a && otrn eval %s --output=%t/b && for i in 1 2 3 4 5 6; do cmp %t/a/result_$i.npy %t/b/result_$i.npy || exit 1; done
// run: otrn run %s --cache=off --disable-pass=integers --output=%t/c && for i in 0 1 2 3 4 5 6; do cmp %t/a/result_$i.npy %t/c/result_$i.npy || exit 1; done
// On trn1 attention of so few rows is no one step, so its weights round before they are multiplied: flags are those of the others, the rest is what it is with a kernel.
// run: otrn run %s --cache=off --target=trn1 --output=%t/d && for i in 1 2 3 4 5 6; do cmp %t/a/result_$i.npy %t/d/result_$i.npy || exit 1; done
// run: otrn run %s --cache=off --target=trn1 --disable-pass=integers --output=%t/g && cmp %t/d/result_0.npy %t/g/result_0.npy
// run: otrn run %s --cache=off --lnc=2 --check --output=%t/e && for i in 0 1 2 3 4 5 6; do cmp %t/a/result_$i.npy %t/e/result_$i.npy || exit 1; done
// run: otrn run %s --cache=off --disable-pass=ahead --output=%t/f && for i in 0 1 2 3 4 5 6; do cmp %t/a/result_$i.npy %t/f/result_$i.npy || exit 1; done
func.func public @main() -> (tensor<3x256x32xf32>, tensor<100x700xi1>, tensor<100x700xi1>, tensor<100x700xi1>, tensor<100x700xi1>, tensor<100x700xi1>, tensor<100x700xi1>) {
  %key0 = stablehlo.constant dense<[7, 2654435769]> : tensor<2xui32>
  %key = stablehlo.optimization_barrier %key0 : tensor<2xui32>
  %qi = stablehlo.iota dim = 0 : tensor<24576xf32>
  %qc = stablehlo.constant dense<0.37> : tensor<24576xf32>
  %qm = stablehlo.multiply %qi, %qc : tensor<24576xf32>
  %qs = stablehlo.sine %qm : tensor<24576xf32>
  %q = stablehlo.reshape %qs : (tensor<24576xf32>) -> tensor<3x256x32xf32>
  %ki = stablehlo.iota dim = 0 : tensor<24576xf32>
  %kc = stablehlo.constant dense<0.48> : tensor<24576xf32>
  %km = stablehlo.multiply %ki, %kc : tensor<24576xf32>
  %ks = stablehlo.sine %km : tensor<24576xf32>
  %k = stablehlo.reshape %ks : (tensor<24576xf32>) -> tensor<3x256x32xf32>
  %vi = stablehlo.iota dim = 0 : tensor<24576xf32>
  %vc = stablehlo.constant dense<0.59> : tensor<24576xf32>
  %vm = stablehlo.multiply %vi, %vc : tensor<24576xf32>
  %vs = stablehlo.sine %vm : tensor<24576xf32>
  %v = stablehlo.reshape %vs : (tensor<24576xf32>) -> tensor<3x256x32xf32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<3x256x32xf32>, tensor<3x256x32xf32>) -> tensor<3x256x256xf32>
  %row = stablehlo.iota dim = 0 : tensor<256x256xi32>
  %col = stablehlo.iota dim = 1 : tensor<256x256xi32>
  %one = stablehlo.compare GE, %row, %col : (tensor<256x256xi32>, tensor<256x256xi32>) -> tensor<256x256xi1>
  %causal = stablehlo.broadcast_in_dim %one, dims = [1, 2] : (tensor<256x256xi1>) -> tensor<3x256x256xi1>
  %low = stablehlo.constant dense<0xFF800000> : tensor<3x256x256xf32>
  %t = stablehlo.select %causal, %s, %low : tensor<3x256x256xi1>, tensor<3x256x256xf32>
  %inf = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %nil = stablehlo.constant dense<0.0> : tensor<f32>
  %most = stablehlo.reduce(%t init: %inf) applies stablehlo.maximum across dimensions = [2] : (tensor<3x256x256xf32>, tensor<f32>) -> tensor<3x256xf32>
  %mostb = stablehlo.broadcast_in_dim %most, dims = [0, 1] : (tensor<3x256xf32>) -> tensor<3x256x256xf32>
  %d = stablehlo.subtract %t, %mostb : tensor<3x256x256xf32>
  %e = stablehlo.exponential %d : tensor<3x256x256xf32>
  %sum = stablehlo.reduce(%e init: %nil) applies stablehlo.add across dimensions = [2] : (tensor<3x256x256xf32>, tensor<f32>) -> tensor<3x256xf32>
  %sumb = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<3x256xf32>) -> tensor<3x256x256xf32>
  %w = stablehlo.divide %e, %sumb : tensor<3x256x256xf32>
  %xi = stablehlo.iota dim = 0 : tensor<196608xui32>
  %xi0 = stablehlo.reshape %xi : (tensor<196608xui32>) -> tensor<3x256x256xui32>
  %xk = stablehlo.slice %key [0:1] : (tensor<2xui32>) -> tensor<1xui32>
  %xks = stablehlo.reshape %xk : (tensor<1xui32>) -> tensor<ui32>
  %xk0 = stablehlo.broadcast_in_dim %xks, dims = [] : (tensor<ui32>) -> tensor<3x256x256xui32>
  %xi1 = stablehlo.add %xi0, %xk0 : tensor<3x256x256xui32>
  %xa0 = stablehlo.add %xk0, %xi1 : tensor<3x256x256xui32>
  %xlc0 = stablehlo.constant dense<13> : tensor<3x256x256xui32>
  %xrc0 = stablehlo.constant dense<19> : tensor<3x256x256xui32>
  %xl0 = stablehlo.shift_left %xi1, %xlc0 : tensor<3x256x256xui32>
  %xr0 = stablehlo.shift_right_logical %xi1, %xrc0 : tensor<3x256x256xui32>
  %xo0 = stablehlo.or %xl0, %xr0 : tensor<3x256x256xui32>
  %xb0 = stablehlo.xor %xo0, %xa0 : tensor<3x256x256xui32>
  %xa1 = stablehlo.add %xa0, %xb0 : tensor<3x256x256xui32>
  %xlc1 = stablehlo.constant dense<15> : tensor<3x256x256xui32>
  %xrc1 = stablehlo.constant dense<17> : tensor<3x256x256xui32>
  %xl1 = stablehlo.shift_left %xb0, %xlc1 : tensor<3x256x256xui32>
  %xr1 = stablehlo.shift_right_logical %xb0, %xrc1 : tensor<3x256x256xui32>
  %xo1 = stablehlo.or %xl1, %xr1 : tensor<3x256x256xui32>
  %xb1 = stablehlo.xor %xo1, %xa1 : tensor<3x256x256xui32>
  %xa2 = stablehlo.add %xa1, %xb1 : tensor<3x256x256xui32>
  %xlc2 = stablehlo.constant dense<26> : tensor<3x256x256xui32>
  %xrc2 = stablehlo.constant dense<6> : tensor<3x256x256xui32>
  %xl2 = stablehlo.shift_left %xb1, %xlc2 : tensor<3x256x256xui32>
  %xr2 = stablehlo.shift_right_logical %xb1, %xrc2 : tensor<3x256x256xui32>
  %xo2 = stablehlo.or %xl2, %xr2 : tensor<3x256x256xui32>
  %xb2 = stablehlo.xor %xo2, %xa2 : tensor<3x256x256xui32>
  %xa3 = stablehlo.add %xa2, %xb2 : tensor<3x256x256xui32>
  %xlc3 = stablehlo.constant dense<6> : tensor<3x256x256xui32>
  %xrc3 = stablehlo.constant dense<26> : tensor<3x256x256xui32>
  %xl3 = stablehlo.shift_left %xb2, %xlc3 : tensor<3x256x256xui32>
  %xr3 = stablehlo.shift_right_logical %xb2, %xrc3 : tensor<3x256x256xui32>
  %xo3 = stablehlo.or %xl3, %xr3 : tensor<3x256x256xui32>
  %xb3 = stablehlo.xor %xo3, %xa3 : tensor<3x256x256xui32>
  %xa4 = stablehlo.add %xa3, %xb3 : tensor<3x256x256xui32>
  %xlc4 = stablehlo.constant dense<17> : tensor<3x256x256xui32>
  %xrc4 = stablehlo.constant dense<15> : tensor<3x256x256xui32>
  %xl4 = stablehlo.shift_left %xb3, %xlc4 : tensor<3x256x256xui32>
  %xr4 = stablehlo.shift_right_logical %xb3, %xrc4 : tensor<3x256x256xui32>
  %xo4 = stablehlo.or %xl4, %xr4 : tensor<3x256x256xui32>
  %xb4 = stablehlo.xor %xo4, %xa4 : tensor<3x256x256xui32>
  %xa5 = stablehlo.add %xa4, %xb4 : tensor<3x256x256xui32>
  %xlc5 = stablehlo.constant dense<29> : tensor<3x256x256xui32>
  %xrc5 = stablehlo.constant dense<3> : tensor<3x256x256xui32>
  %xl5 = stablehlo.shift_left %xb4, %xlc5 : tensor<3x256x256xui32>
  %xr5 = stablehlo.shift_right_logical %xb4, %xrc5 : tensor<3x256x256xui32>
  %xo5 = stablehlo.or %xl5, %xr5 : tensor<3x256x256xui32>
  %xb5 = stablehlo.xor %xo5, %xa5 : tensor<3x256x256xui32>
  %xa6 = stablehlo.add %xa5, %xb5 : tensor<3x256x256xui32>
  %xlc6 = stablehlo.constant dense<16> : tensor<3x256x256xui32>
  %xrc6 = stablehlo.constant dense<16> : tensor<3x256x256xui32>
  %xl6 = stablehlo.shift_left %xb5, %xlc6 : tensor<3x256x256xui32>
  %xr6 = stablehlo.shift_right_logical %xb5, %xrc6 : tensor<3x256x256xui32>
  %xo6 = stablehlo.or %xl6, %xr6 : tensor<3x256x256xui32>
  %xb6 = stablehlo.xor %xo6, %xa6 : tensor<3x256x256xui32>
  %xa7 = stablehlo.add %xa6, %xb6 : tensor<3x256x256xui32>
  %xlc7 = stablehlo.constant dense<24> : tensor<3x256x256xui32>
  %xrc7 = stablehlo.constant dense<8> : tensor<3x256x256xui32>
  %xl7 = stablehlo.shift_left %xb6, %xlc7 : tensor<3x256x256xui32>
  %xr7 = stablehlo.shift_right_logical %xb6, %xrc7 : tensor<3x256x256xui32>
  %xo7 = stablehlo.or %xl7, %xr7 : tensor<3x256x256xui32>
  %xb7 = stablehlo.xor %xo7, %xa7 : tensor<3x256x256xui32>
  %xbits = stablehlo.xor %xa7, %xb7 : tensor<3x256x256xui32>
  %xc9 = stablehlo.constant dense<9> : tensor<3x256x256xui32>
  %xone = stablehlo.constant dense<1065353216> : tensor<3x256x256xui32>
  %xm = stablehlo.shift_right_logical %xbits, %xc9 : tensor<3x256x256xui32>
  %xmo = stablehlo.or %xm, %xone : tensor<3x256x256xui32>
  %xf = stablehlo.bitcast_convert %xmo : (tensor<3x256x256xui32>) -> tensor<3x256x256xf32>
  %xf1 = stablehlo.constant dense<1.0> : tensor<3x256x256xf32>
  %xu = stablehlo.subtract %xf, %xf1 : tensor<3x256x256xf32>
  %xz = stablehlo.constant dense<0.0> : tensor<3x256x256xf32>
  %xv = stablehlo.maximum %xz, %xu : tensor<3x256x256xf32>
  %xp = stablehlo.constant dense<0.9> : tensor<3x256x256xf32>
  %keep = stablehlo.compare LT, %xv, %xp, FLOAT : (tensor<3x256x256xf32>, tensor<3x256x256xf32>) -> tensor<3x256x256xi1>
  %zero = stablehlo.constant dense<0.0> : tensor<3x256x256xf32>
  %dropped = stablehlo.select %keep, %w, %zero : tensor<3x256x256xi1>, tensor<3x256x256xf32>
  %y = stablehlo.dot_general %dropped, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x256x256xf32>, tensor<3x256x32xf32>) -> tensor<3x256x32xf32>
  %yi = stablehlo.iota dim = 0 : tensor<70000xui32>
  %yi0 = stablehlo.reshape %yi : (tensor<70000xui32>) -> tensor<100x700xui32>
  %yk = stablehlo.slice %key [1:2] : (tensor<2xui32>) -> tensor<1xui32>
  %yks = stablehlo.reshape %yk : (tensor<1xui32>) -> tensor<ui32>
  %yk0 = stablehlo.broadcast_in_dim %yks, dims = [] : (tensor<ui32>) -> tensor<100x700xui32>
  %yi1 = stablehlo.add %yi0, %yk0 : tensor<100x700xui32>
  %ya0 = stablehlo.add %yk0, %yi1 : tensor<100x700xui32>
  %ylc0 = stablehlo.constant dense<13> : tensor<100x700xui32>
  %yrc0 = stablehlo.constant dense<19> : tensor<100x700xui32>
  %yl0 = stablehlo.shift_left %yi1, %ylc0 : tensor<100x700xui32>
  %yr0 = stablehlo.shift_right_logical %yi1, %yrc0 : tensor<100x700xui32>
  %yo0 = stablehlo.or %yl0, %yr0 : tensor<100x700xui32>
  %yb0 = stablehlo.xor %yo0, %ya0 : tensor<100x700xui32>
  %ya1 = stablehlo.add %ya0, %yb0 : tensor<100x700xui32>
  %ylc1 = stablehlo.constant dense<15> : tensor<100x700xui32>
  %yrc1 = stablehlo.constant dense<17> : tensor<100x700xui32>
  %yl1 = stablehlo.shift_left %yb0, %ylc1 : tensor<100x700xui32>
  %yr1 = stablehlo.shift_right_logical %yb0, %yrc1 : tensor<100x700xui32>
  %yo1 = stablehlo.or %yl1, %yr1 : tensor<100x700xui32>
  %yb1 = stablehlo.xor %yo1, %ya1 : tensor<100x700xui32>
  %ya2 = stablehlo.add %ya1, %yb1 : tensor<100x700xui32>
  %ylc2 = stablehlo.constant dense<26> : tensor<100x700xui32>
  %yrc2 = stablehlo.constant dense<6> : tensor<100x700xui32>
  %yl2 = stablehlo.shift_left %yb1, %ylc2 : tensor<100x700xui32>
  %yr2 = stablehlo.shift_right_logical %yb1, %yrc2 : tensor<100x700xui32>
  %yo2 = stablehlo.or %yl2, %yr2 : tensor<100x700xui32>
  %yb2 = stablehlo.xor %yo2, %ya2 : tensor<100x700xui32>
  %ya3 = stablehlo.add %ya2, %yb2 : tensor<100x700xui32>
  %ylc3 = stablehlo.constant dense<6> : tensor<100x700xui32>
  %yrc3 = stablehlo.constant dense<26> : tensor<100x700xui32>
  %yl3 = stablehlo.shift_left %yb2, %ylc3 : tensor<100x700xui32>
  %yr3 = stablehlo.shift_right_logical %yb2, %yrc3 : tensor<100x700xui32>
  %yo3 = stablehlo.or %yl3, %yr3 : tensor<100x700xui32>
  %yb3 = stablehlo.xor %yo3, %ya3 : tensor<100x700xui32>
  %ya4 = stablehlo.add %ya3, %yb3 : tensor<100x700xui32>
  %ylc4 = stablehlo.constant dense<17> : tensor<100x700xui32>
  %yrc4 = stablehlo.constant dense<15> : tensor<100x700xui32>
  %yl4 = stablehlo.shift_left %yb3, %ylc4 : tensor<100x700xui32>
  %yr4 = stablehlo.shift_right_logical %yb3, %yrc4 : tensor<100x700xui32>
  %yo4 = stablehlo.or %yl4, %yr4 : tensor<100x700xui32>
  %yb4 = stablehlo.xor %yo4, %ya4 : tensor<100x700xui32>
  %ya5 = stablehlo.add %ya4, %yb4 : tensor<100x700xui32>
  %ylc5 = stablehlo.constant dense<29> : tensor<100x700xui32>
  %yrc5 = stablehlo.constant dense<3> : tensor<100x700xui32>
  %yl5 = stablehlo.shift_left %yb4, %ylc5 : tensor<100x700xui32>
  %yr5 = stablehlo.shift_right_logical %yb4, %yrc5 : tensor<100x700xui32>
  %yo5 = stablehlo.or %yl5, %yr5 : tensor<100x700xui32>
  %yb5 = stablehlo.xor %yo5, %ya5 : tensor<100x700xui32>
  %ya6 = stablehlo.add %ya5, %yb5 : tensor<100x700xui32>
  %ylc6 = stablehlo.constant dense<16> : tensor<100x700xui32>
  %yrc6 = stablehlo.constant dense<16> : tensor<100x700xui32>
  %yl6 = stablehlo.shift_left %yb5, %ylc6 : tensor<100x700xui32>
  %yr6 = stablehlo.shift_right_logical %yb5, %yrc6 : tensor<100x700xui32>
  %yo6 = stablehlo.or %yl6, %yr6 : tensor<100x700xui32>
  %yb6 = stablehlo.xor %yo6, %ya6 : tensor<100x700xui32>
  %ya7 = stablehlo.add %ya6, %yb6 : tensor<100x700xui32>
  %ylc7 = stablehlo.constant dense<24> : tensor<100x700xui32>
  %yrc7 = stablehlo.constant dense<8> : tensor<100x700xui32>
  %yl7 = stablehlo.shift_left %yb6, %ylc7 : tensor<100x700xui32>
  %yr7 = stablehlo.shift_right_logical %yb6, %yrc7 : tensor<100x700xui32>
  %yo7 = stablehlo.or %yl7, %yr7 : tensor<100x700xui32>
  %yb7 = stablehlo.xor %yo7, %ya7 : tensor<100x700xui32>
  %ybits = stablehlo.xor %ya7, %yb7 : tensor<100x700xui32>
  %yc9 = stablehlo.constant dense<9> : tensor<100x700xui32>
  %yone = stablehlo.constant dense<1065353216> : tensor<100x700xui32>
  %ym = stablehlo.shift_right_logical %ybits, %yc9 : tensor<100x700xui32>
  %ymo = stablehlo.or %ym, %yone : tensor<100x700xui32>
  %yf = stablehlo.bitcast_convert %ymo : (tensor<100x700xui32>) -> tensor<100x700xf32>
  %yf1 = stablehlo.constant dense<1.0> : tensor<100x700xf32>
  %yu = stablehlo.subtract %yf, %yf1 : tensor<100x700xf32>
  %yz = stablehlo.constant dense<0.0> : tensor<100x700xf32>
  %yv = stablehlo.maximum %yz, %yu : tensor<100x700xf32>
  %yp = stablehlo.constant dense<0.25> : tensor<100x700xf32>
  %f0 = stablehlo.compare LT, %yv, %yp, FLOAT : (tensor<100x700xf32>, tensor<100x700xf32>) -> tensor<100x700xi1>
  %e1 = stablehlo.constant dense<0.0> : tensor<100x700xf32>
  %f1 = stablehlo.compare LE, %yv, %e1, FLOAT : (tensor<100x700xf32>, tensor<100x700xf32>) -> tensor<100x700xi1>
  %e2 = stablehlo.constant dense<1.0> : tensor<100x700xf32>
  %f2 = stablehlo.compare GE, %yv, %e2, FLOAT : (tensor<100x700xf32>, tensor<100x700xf32>) -> tensor<100x700xi1>
  %e3 = stablehlo.constant dense<2.0> : tensor<100x700xf32>
  %f3 = stablehlo.compare GT, %e3, %yv, FLOAT : (tensor<100x700xf32>, tensor<100x700xf32>) -> tensor<100x700xi1>
  %e4 = stablehlo.constant dense<0.5> : tensor<100x700xf32>
  %f4 = stablehlo.compare GT, %yv, %e4, FLOAT : (tensor<100x700xf32>, tensor<100x700xf32>) -> tensor<100x700xi1>
  %c8 = stablehlo.constant dense<8> : tensor<100x700xui32>
  %whole = stablehlo.shift_right_logical %ybits, %c8 : tensor<100x700xui32>
  %wf = stablehlo.convert %whole : (tensor<100x700xui32>) -> tensor<100x700xf32>
  %scale = stablehlo.constant dense<5.9604644775390625e-08> : tensor<100x700xf32>
  %wu = stablehlo.multiply %wf, %scale : tensor<100x700xf32>
  %tenth = stablehlo.constant dense<0.1> : tensor<100x700xf32>
  %f5 = stablehlo.compare GT, %wu, %tenth, FLOAT : (tensor<100x700xf32>, tensor<100x700xf32>) -> tensor<100x700xi1>
  return %y, %f0, %f1, %f2, %f3, %f4, %f5 : tensor<3x256x32xf32>, tensor<100x700xi1>, tensor<100x700xi1>, tensor<100x700xi1>, tensor<100x700xi1>, tensor<100x700xi1>, tensor<100x700xi1>
}
