// Products of bytes are products of bf16 on the array, to the bit: sums that could pass 2^24 in pieces, which are added as integers; with signs and without, the
// largest bytes, batches, two dimensions summed. A small one stays a kernel.
// run: otrn compile %s --cache=off -o %t/a.otrn --dump=expand > %t/text && grep -c 'xbf16>) -> tensor.*f32>' %t/text
// expect: 10
// run: otrn run %t/a.otrn --check --output=%t/a && otrn eval %s --output=%t/b && for i in 0 1 2 3 4; do cmp %t/a/result_$i.npy %t/b/result_$i.npy || exit 1; done
func.func public @main() -> (tensor<64x96xi32>, tensor<32x40xi32>, tensor<2x64x64xi32>, tensor<64x32xi32>, tensor<2x2xi32>) {
  %i = stablehlo.iota dim = 0 : tensor<262144xi32>
  %m = stablehlo.constant dense<40503> : tensor<262144xi32>
  %h = stablehlo.multiply %i, %m : tensor<262144xi32>
  %s = stablehlo.constant dense<7> : tensor<262144xi32>
  %k = stablehlo.shift_right_logical %h, %s : tensor<262144xi32>
  %x = stablehlo.convert %k : (tensor<262144xi32>) -> tensor<262144xi8>
  %u = stablehlo.convert %k : (tensor<262144xi32>) -> tensor<262144xui8>
  %low = stablehlo.constant dense<-128> : tensor<64x1030xi8>
  %a0 = stablehlo.slice %x [0:153600] : (tensor<262144xi8>) -> tensor<153600xi8>
  %b0 = stablehlo.slice %x [9:230409] : (tensor<262144xi8>) -> tensor<230400xi8>
  %a1 = stablehlo.reshape %a0 : (tensor<153600xi8>) -> tensor<64x2400xi8>
  %b1 = stablehlo.reshape %b0 : (tensor<230400xi8>) -> tensor<2400x96xi8>
  %r0 = stablehlo.dot_general %a1, %b1, contracting_dims = [1] x [0] : (tensor<64x2400xi8>, tensor<2400x96xi8>) -> tensor<64x96xi32>
  %a2 = stablehlo.slice %u [5:32773] : (tensor<262144xui8>) -> tensor<32768xui8>
  %a3 = stablehlo.reshape %a2 : (tensor<32768xui8>) -> tensor<32x4x256xui8>
  %b2 = stablehlo.slice %u [5:40965] : (tensor<262144xui8>) -> tensor<40960xui8>
  %b3 = stablehlo.reshape %b2 : (tensor<40960xui8>) -> tensor<256x40x4xui8>
  %r1 = stablehlo.dot_general %a3, %b3, contracting_dims = [1, 2] x [2, 0] : (tensor<32x4x256xui8>, tensor<256x40x4xui8>) -> tensor<32x40xi32>
  %a4 = stablehlo.slice %x [0:65536] : (tensor<262144xi8>) -> tensor<65536xi8>
  %a5 = stablehlo.reshape %a4 : (tensor<65536xi8>) -> tensor<2x64x512xi8>
  %r2 = stablehlo.dot_general %a5, %a5, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x64x512xi8>, tensor<2x64x512xi8>) -> tensor<2x64x64xi32>
  %low2 = stablehlo.slice %low [0:32, 0:1030] : (tensor<64x1030xi8>) -> tensor<32x1030xi8>
  %r3 = stablehlo.dot_general %low, %low2, contracting_dims = [1] x [1] : (tensor<64x1030xi8>, tensor<32x1030xi8>) -> tensor<64x32xi32>
  %a6 = stablehlo.slice %a1 [0:2, 0:2400] : (tensor<64x2400xi8>) -> tensor<2x2400xi8>
  %r4 = stablehlo.dot_general %a6, %a6, contracting_dims = [1] x [1] : (tensor<2x2400xi8>, tensor<2x2400xi8>) -> tensor<2x2xi32>
  return %r0, %r1, %r2, %r3, %r4 : tensor<64x96xi32>, tensor<32x40xi32>, tensor<2x64x64xi32>, tensor<64x32xi32>, tensor<2x2xi32>
}
