// Draws of the engines' generator (rng_bit_generator, default algorithm): attention with dropout and its gradient to the weights draw where they
// choose, each time the same; no bits or flags in HBM. Numbers are the evaluator's and the kernel's, whatever the tiles: one core or two, another chip,
// planned or not, another order. What a kernel reads is put into memory; few draws are a kernel's. The state counts on.
// run: otrn compile %s --cache=off --lnc=1 -o %t/a.otrn --dump=tile > %t/tile && echo $(grep -c 'dropout_at.*op0=less' %t/tile) of $(grep -c 'op0=less' %t/tile)
// expect: 9 of 9
// run: otrn run %t/a.otrn --check --output=%t/a && otrn eval %s --output=%t/b && for i in 2 3 4 5 6 7; do cmp %t/a/result_$i.npy %t/b/result_$i.npy || exit 1; done
// run: otrn run %s --cache=off --disable-pass=draws,integers --output=%t/c && for i in 2 3 4 5 6 7; do cmp %t/a/result_$i.npy %t/c/result_$i.npy || exit 1; done
// run: otrn run %s --cache=off --target=trn1 --output=%t/d && for i in 2 3 4 5 6 7; do cmp %t/a/result_$i.npy %t/d/result_$i.npy || exit 1; done
// run: otrn run %s --cache=off --lnc=2 --check --output=%t/e && for i in 0 1 2 3 4 5 6 7; do cmp %t/a/result_$i.npy %t/e/result_$i.npy || exit 1; done
// run: otrn run %t/a.otrn --plan=all --threads=2 --output=%t/f && for i in 0 1 2 3 4 5 6 7; do cmp %t/a/result_$i.npy %t/f/result_$i.npy || exit 1; done
// run: otrn run %t/a.otrn --plan=off --output=%t/g && for i in 0 1 2 3 4 5 6 7; do cmp %t/a/result_$i.npy %t/g/result_$i.npy || exit 1; done
// run: otrn run %t/a.otrn --host=portable --output=%t/h && for i in 0 1 2 3 4 5 6 7; do cmp %t/a/result_$i.npy %t/h/result_$i.npy || exit 1; done
func.func public @main() -> (tensor<3x256x32xf32>, tensor<3x256x32xf32>, tensor<2xui64>, tensor<100x700xf32>, tensor<100x700xui32>, tensor<5xui32>, tensor<6xui64>, tensor<100x700xi1>) {
  %key0 = stablehlo.constant dense<[7, 2654435769]> : tensor<2xui64>
  %key = stablehlo.optimization_barrier %key0 : tensor<2xui64>
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
  %low = stablehlo.constant dense<-1.0e9> : tensor<3x256x256xf32>
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
  %st, %bits = stablehlo.rng_bit_generator %key, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x256x256xui32>)
  %nine = stablehlo.constant dense<9> : tensor<3x256x256xui32>
  %upper = stablehlo.shift_right_logical %bits, %nine : tensor<3x256x256xui32>
  %ones = stablehlo.constant dense<1065353216> : tensor<3x256x256xui32>
  %word = stablehlo.or %upper, %ones : tensor<3x256x256xui32>
  %float = stablehlo.bitcast_convert %word : (tensor<3x256x256xui32>) -> tensor<3x256x256xf32>
  %onef = stablehlo.constant dense<1.0> : tensor<3x256x256xf32>
  %unit = stablehlo.subtract %float, %onef : tensor<3x256x256xf32>
  %p = stablehlo.constant dense<0.9> : tensor<3x256x256xf32>
  %kept = stablehlo.compare LT, %unit, %p : (tensor<3x256x256xf32>, tensor<3x256x256xf32>) -> tensor<3x256x256xi1>
  %zero = stablehlo.constant dense<0.0> : tensor<3x256x256xf32>
  %dropped = stablehlo.select %kept, %w, %zero : tensor<3x256x256xi1>, tensor<3x256x256xf32>
  %r0 = stablehlo.dot_general %dropped, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x256x256xf32>, tensor<3x256x32xf32>) -> tensor<3x256x32xf32>
  %dw = stablehlo.dot_general %r0, %v, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<3x256x32xf32>, tensor<3x256x32xf32>) -> tensor<3x256x256xf32>
  %dk = stablehlo.select %kept, %dw, %zero : tensor<3x256x256xi1>, tensor<3x256x256xf32>
  %r1 = stablehlo.dot_general %dk, %k, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x256x256xf32>, tensor<3x256x32xf32>) -> tensor<3x256x32xf32>
  %st2, %more = stablehlo.rng_bit_generator %st, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<100x700xui32>)
  %eight = stablehlo.constant dense<8> : tensor<100x700xui32>
  %top = stablehlo.shift_right_logical %more, %eight : tensor<100x700xui32>
  %wide = stablehlo.convert %top : (tensor<100x700xui32>) -> tensor<100x700xf32>
  %scale = stablehlo.constant dense<5.9604644775390625e-08> : tensor<100x700xf32>
  %u = stablehlo.multiply %wide, %scale : tensor<100x700xf32>
  %seven = stablehlo.constant dense<77> : tensor<100x700xui32>
  %mixed = stablehlo.xor %more, %seven : tensor<100x700xui32>
  %half = stablehlo.constant dense<0.5> : tensor<100x700xf32>
  %high = stablehlo.compare GE, %u, %half : (tensor<100x700xf32>, tensor<100x700xf32>) -> tensor<100x700xi1>
  %st3, %few = stablehlo.rng_bit_generator %st2, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui32>)
  %st4, %large = stablehlo.rng_bit_generator %st3, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<6xui64>)
  return %r0, %r1, %st4, %u, %mixed, %few, %large, %high : tensor<3x256x32xf32>, tensor<3x256x32xf32>, tensor<2xui64>, tensor<100x700xf32>, tensor<100x700xui32>, tensor<5xui32>, tensor<6xui64>, tensor<100x700xi1>
}
