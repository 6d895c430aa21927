// Dropout is one instruction, which draws and chooses: by flags or by their opposite, in rows and where rows mean nothing, short rows side by side, operands that repeat, what
// was to be rounded first. Bits are the evaluator's and those of flags in memory, on every chip. Flags that somebody else reads are made.
// run: otrn compile %s --cache=off --lnc=1 -o %t/a.otrn --dump=tile > %t/tile && echo $(grep -c dropout_at %t/tile) and $(grep -c rng_at %t/tile), $(grep -c select_reduce %t/tile) choices, $(grep -c 'tensor_copy.*dtype=bf16' %t/tile) copies
// expect: 12 and 2, 2 choices, 0 copies
// run: otrn eval %s --output=%t/b && for t in trn1 trn2 trn3; do otrn run %s --cache=off --target=$t --check --output=%t/$t || exit 1; for i in 0 1 2 3 4 5; do cmp %t/$t/result_$i.npy %t/b/result_$i.npy || exit 1; done; done
// run: otrn run %s --cache=off --disable-pass=draws --output=%t/c && for i in 0 1 2 3 4 5; do cmp %t/b/result_$i.npy %t/c/result_$i.npy || exit 1; done
// run: otrn run %t/a.otrn --host=portable --plan=off --output=%t/d && for i in 0 1 2 3 4 5; do cmp %t/b/result_$i.npy %t/d/result_$i.npy || exit 1; done
func.func public @main() -> (tensor<512x768xf32>, tensor<512x768xf32>, tensor<4096x64xf32>, tensor<512x768xbf16>, tensor<512x768xf32>, tensor<512x768xf32>) {
  %key0 = stablehlo.constant dense<[7, 2654435769]> : tensor<2xui64>
  %key = stablehlo.optimization_barrier %key0 : tensor<2xui64>
  %i = stablehlo.iota dim = 0 : tensor<393216xf32>
  %mid = stablehlo.constant dense<196608.0> : tensor<393216xf32>
  %step = stablehlo.constant dense<0.37> : tensor<393216xf32>
  %i0 = stablehlo.subtract %i, %mid : tensor<393216xf32>
  %x0 = stablehlo.multiply %i0, %step : tensor<393216xf32>
  %x1 = stablehlo.optimization_barrier %x0 : tensor<393216xf32>
  %x = stablehlo.reshape %x1 : (tensor<393216xf32>) -> tensor<512x768xf32>
  %st, %bits = stablehlo.rng_bit_generator %key, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<512x768xui32>)
  %nine = stablehlo.constant dense<9> : tensor<512x768xui32>
  %upper = stablehlo.shift_right_logical %bits, %nine : tensor<512x768xui32>
  %ones = stablehlo.constant dense<1065353216> : tensor<512x768xui32>
  %word = stablehlo.or %upper, %ones : tensor<512x768xui32>
  %float = stablehlo.bitcast_convert %word : (tensor<512x768xui32>) -> tensor<512x768xf32>
  %one = stablehlo.constant dense<1.0> : tensor<512x768xf32>
  %unit = stablehlo.subtract %float, %one : tensor<512x768xf32>
  %p = stablehlo.constant dense<0.75> : tensor<512x768xf32>
  %kept = stablehlo.compare LT, %unit, %p : (tensor<512x768xf32>, tensor<512x768xf32>) -> tensor<512x768xi1>
  %gone = stablehlo.compare GE, %unit, %p : (tensor<512x768xf32>, tensor<512x768xf32>) -> tensor<512x768xi1>
  %zero = stablehlo.constant dense<0.0> : tensor<512x768xf32>
  %two = stablehlo.constant dense<2.0> : tensor<512x768xf32>
  %xx = stablehlo.multiply %x, %two : tensor<512x768xf32>
  %r0 = stablehlo.select %kept, %xx, %zero : tensor<512x768xi1>, tensor<512x768xf32>
  %d0 = stablehlo.select %gone, %zero, %xx : tensor<512x768xi1>, tensor<512x768xf32>
  %nil = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %most = stablehlo.reduce(%d0 init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<512x768xf32>, tensor<f32>) -> tensor<512xf32>
  %mostb = stablehlo.broadcast_in_dim %most, dims = [0] : (tensor<512xf32>) -> tensor<512x768xf32>
  %r1 = stablehlo.subtract %d0, %mostb : tensor<512x768xf32>
  %st2, %more = stablehlo.rng_bit_generator %st, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4096x64xui32>)
  %eight = stablehlo.constant dense<8> : tensor<4096x64xui32>
  %top = stablehlo.shift_right_logical %more, %eight : tensor<4096x64xui32>
  %wide = stablehlo.convert %top : (tensor<4096x64xui32>) -> tensor<4096x64xf32>
  %scale = stablehlo.constant dense<5.9604644775390625e-08> : tensor<4096x64xf32>
  %u = stablehlo.multiply %wide, %scale : tensor<4096x64xf32>
  %half = stablehlo.constant dense<0.5> : tensor<4096x64xf32>
  %high = stablehlo.compare GE, %u, %half : (tensor<4096x64xf32>, tensor<4096x64xf32>) -> tensor<4096x64xi1>
  %v0 = stablehlo.slice %x1 [0:64] : (tensor<393216xf32>) -> tensor<64xf32>
  %v = stablehlo.broadcast_in_dim %v0, dims = [1] : (tensor<64xf32>) -> tensor<4096x64xf32>
  %none = stablehlo.constant dense<0.0> : tensor<4096x64xf32>
  %s0 = stablehlo.select %high, %v, %none : tensor<4096x64xi1>, tensor<4096x64xf32>
  %smost = stablehlo.reduce(%s0 init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<4096x64xf32>, tensor<f32>) -> tensor<4096xf32>
  %smostb = stablehlo.broadcast_in_dim %smost, dims = [0] : (tensor<4096xf32>) -> tensor<4096x64xf32>
  %r2 = stablehlo.add %s0, %smostb : tensor<4096x64xf32>
  %n0 = stablehlo.convert %xx : (tensor<512x768xf32>) -> tensor<512x768xbf16>
  %nzero = stablehlo.constant dense<0.0> : tensor<512x768xbf16>
  %r3 = stablehlo.select %kept, %n0, %nzero : tensor<512x768xi1>, tensor<512x768xbf16>
  %st3, %third = stablehlo.rng_bit_generator %st2, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<512x768xui32>)
  %up3 = stablehlo.shift_right_logical %third, %nine : tensor<512x768xui32>
  %word3 = stablehlo.or %up3, %ones : tensor<512x768xui32>
  %float3 = stablehlo.bitcast_convert %word3 : (tensor<512x768xui32>) -> tensor<512x768xf32>
  %unit3 = stablehlo.subtract %float3, %one : tensor<512x768xf32>
  %flag = stablehlo.compare LT, %unit3, %p : (tensor<512x768xf32>, tensor<512x768xf32>) -> tensor<512x768xi1>
  %minus = stablehlo.constant dense<-1.0> : tensor<512x768xf32>
  %r4 = stablehlo.select %flag, %xx, %zero : tensor<512x768xi1>, tensor<512x768xf32>
  %r5 = stablehlo.select %flag, %xx, %minus : tensor<512x768xi1>, tensor<512x768xf32>
  return %r0, %r1, %r2, %r3, %r4, %r5 : tensor<512x768xf32>, tensor<512x768xf32>, tensor<4096x64xf32>, tensor<512x768xbf16>, tensor<512x768xf32>, tensor<512x768xf32>
}
