// Long chains of integers: bits on the vector engine, sums that wrap on gpsimd, numbers of elements made where they are used. The
// second part of the elements is one that does not fill all partitions.
// run: otrn eval %s
// run: otrn run %s --check
// run: otrn run %s --check --lnc=2
// run: otrn run %s --target=trn1
// run: otrn run %s --disable-pass=integers
// run: otrn compile %s --dump=tile
// expect: gpsimd: iota
// expect: gpsimd: tensor_tensor
// expect: op0=bitwise_xor
func.func public @main() {
  %i = stablehlo.iota dim = 0 : tensor<33000xui64>
  %s = stablehlo.constant dense<32> : tensor<33000xui64>
  %hi64 = stablehlo.shift_right_logical %i, %s : tensor<33000xui64>
  %hi = stablehlo.convert %hi64 : (tensor<33000xui64>) -> tensor<33000xui32>
  %x = stablehlo.convert %i : (tensor<33000xui64>) -> tensor<33000xui32>
  %key0 = stablehlo.constant dense<[7, 2654435769]> : tensor<2xui32>
  %key1 = stablehlo.optimization_barrier %key0 : tensor<2xui32>
  %key2 = stablehlo.slice %key1 [1:2] : (tensor<2xui32>) -> tensor<1xui32>
  %key3 = stablehlo.reshape %key2 : (tensor<1xui32>) -> tensor<ui32>
  %key = stablehlo.broadcast_in_dim %key3, dims = [] : (tensor<ui32>) -> tensor<33000xui32>
  %a0 = stablehlo.add %hi, %key : tensor<33000xui32>
  %b0 = stablehlo.not %x : tensor<33000xui32>
  %a1 = stablehlo.add %a0, %b0 : tensor<33000xui32>
  %l0c = stablehlo.constant dense<13> : tensor<33000xui32>
  %r0c = stablehlo.constant dense<19> : tensor<33000xui32>
  %l0 = stablehlo.shift_left %b0, %l0c : tensor<33000xui32>
  %r0 = stablehlo.shift_right_logical %b0, %r0c : tensor<33000xui32>
  %o0 = stablehlo.or %l0, %r0 : tensor<33000xui32>
  %b1 = stablehlo.xor %a1, %o0 : tensor<33000xui32>
  %a2 = stablehlo.add %a1, %b1 : tensor<33000xui32>
  %l1c = stablehlo.constant dense<15> : tensor<33000xui32>
  %r1c = stablehlo.constant dense<17> : tensor<33000xui32>
  %l1 = stablehlo.shift_left %b1, %l1c : tensor<33000xui32>
  %r1 = stablehlo.shift_right_logical %b1, %r1c : tensor<33000xui32>
  %o1 = stablehlo.or %l1, %r1 : tensor<33000xui32>
  %b2 = stablehlo.xor %a2, %o1 : tensor<33000xui32>
  %a3 = stablehlo.add %a2, %b2 : tensor<33000xui32>
  %l2c = stablehlo.constant dense<26> : tensor<33000xui32>
  %r2c = stablehlo.constant dense<6> : tensor<33000xui32>
  %l2 = stablehlo.shift_left %b2, %l2c : tensor<33000xui32>
  %r2 = stablehlo.shift_right_logical %b2, %r2c : tensor<33000xui32>
  %o2 = stablehlo.or %l2, %r2 : tensor<33000xui32>
  %b3 = stablehlo.xor %a3, %o2 : tensor<33000xui32>
  %a4 = stablehlo.add %a3, %b3 : tensor<33000xui32>
  %l3c = stablehlo.constant dense<6> : tensor<33000xui32>
  %r3c = stablehlo.constant dense<26> : tensor<33000xui32>
  %l3 = stablehlo.shift_left %b3, %l3c : tensor<33000xui32>
  %r3 = stablehlo.shift_right_logical %b3, %r3c : tensor<33000xui32>
  %o3 = stablehlo.or %l3, %r3 : tensor<33000xui32>
  %b4 = stablehlo.xor %a4, %o3 : tensor<33000xui32>
  %a5 = stablehlo.add %a4, %b4 : tensor<33000xui32>
  %l4c = stablehlo.constant dense<17> : tensor<33000xui32>
  %r4c = stablehlo.constant dense<15> : tensor<33000xui32>
  %l4 = stablehlo.shift_left %b4, %l4c : tensor<33000xui32>
  %r4 = stablehlo.shift_right_logical %b4, %r4c : tensor<33000xui32>
  %o4 = stablehlo.or %l4, %r4 : tensor<33000xui32>
  %b5 = stablehlo.xor %a5, %o4 : tensor<33000xui32>
  %a6 = stablehlo.add %a5, %b5 : tensor<33000xui32>
  %l5c = stablehlo.constant dense<29> : tensor<33000xui32>
  %r5c = stablehlo.constant dense<3> : tensor<33000xui32>
  %l5 = stablehlo.shift_left %b5, %l5c : tensor<33000xui32>
  %r5 = stablehlo.shift_right_logical %b5, %r5c : tensor<33000xui32>
  %o5 = stablehlo.or %l5, %r5 : tensor<33000xui32>
  %b6 = stablehlo.xor %a6, %o5 : tensor<33000xui32>
  %m = stablehlo.constant dense<1664525> : tensor<33000xui32>
  %c = stablehlo.constant dense<1013904223> : tensor<33000xui32>
  %p = stablehlo.multiply %b6, %m : tensor<33000xui32>
  %q = stablehlo.add %p, %c : tensor<33000xui32>
  %u = stablehlo.subtract %key, %q : tensor<33000xui32>
  %v = stablehlo.xor %u, %a6 : tensor<33000xui32>
  %mask = stablehlo.constant dense<2147483647> : tensor<33000xui32>
  %w = stablehlo.and %v, %mask : tensor<33000xui32>
  %eight = stablehlo.constant dense<8> : tensor<33000xui32>
  %expo = stablehlo.constant dense<1065353216> : tensor<33000xui32>
  %z = stablehlo.shift_right_logical %w, %eight : tensor<33000xui32>
  %zo = stablehlo.or %z, %expo : tensor<33000xui32>
  %f = stablehlo.bitcast_convert %zo : (tensor<33000xui32>) -> tensor<33000xf32>
  %w0 = stablehlo.slice %w [0:3] : (tensor<33000xui32>) -> tensor<3xui32>
  check.expect_eq_const %w0, dense<[1631208079, 2016525669, 1993478404]> : tensor<3xui32>
  %w16383 = stablehlo.slice %w [16383:16386] : (tensor<33000xui32>) -> tensor<3xui32>
  check.expect_eq_const %w16383, dense<[587109593, 468731141, 563077275]> : tensor<3xui32>
  %w32764 = stablehlo.slice %w [32764:32770] : (tensor<33000xui32>) -> tensor<6xui32>
  check.expect_eq_const %w32764, dense<[705064281, 909031370, 984395789, 1468526357, 1334346198, 782378379]> : tensor<6xui32>
  %w32997 = stablehlo.slice %w [32997:33000] : (tensor<33000xui32>) -> tensor<3xui32>
  check.expect_eq_const %w32997, dense<[354230705, 581560383, 1136858603]> : tensor<3xui32>
  %f1 = stablehlo.slice %f [99:101] : (tensor<33000xf32>) -> tensor<2xf32>
  check.expect_eq_const %f1, dense<[1.3069456815719604, 1.4848315715789795]> : tensor<2xf32>
  return
}
