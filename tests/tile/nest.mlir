// Programs that begin at nests: products and moves through strides, against what StableHLO says.
// run: otrn run %s
// run: otrn run %s --target=trn1
// run: otrn compile %s --dump=nest
// expect: product bf16 -> f32 in0[0] in1[0] -> out0[0] b(2:6144:1536:128) k(96:1:16) m(8:96:16) n(16:1:1)
// What is printed of StableHLO's own operations reads the same.
// expect: product bf16 -> f32 in0[0] in1[0] -> out0[0] b(2:768:1536:128) k(96:1:16) m(8:96:16) n(16:1:1)
// expect: move f32 in0[31] -> out0[0] (8:-1:4, 4:8:1)
func.func @main() {
  %i = stablehlo.iota dim = 0 : tensor<12288xf32>
  %s = stablehlo.constant dense<0.0078125> : tensor<12288xf32>
  %f = stablehlo.multiply %i, %s : tensor<12288xf32>
  %b = stablehlo.convert %f : (tensor<12288xf32>) -> tensor<12288xbf16>
  %all = stablehlo.sine %b : tensor<12288xbf16>
  %w0 = stablehlo.slice %all [0:3072] : (tensor<12288xbf16>) -> tensor<3072xbf16>
  %w = stablehlo.reshape %w0 : (tensor<3072xbf16>) -> tensor<2x96x16xbf16>
  // two products whose left sides lie 6144 elements apart
  %p = stablehlo.custom_call @otrn.nest(%all, %w0) {backend_config = "product bf16 -> f32 in0[0] in1[0] -> out0[0] b(2:6144:1536:128) k(96:1:16) m(8:96:16) n(16:1:1)"} : (tensor<12288xbf16>, tensor<3072xbf16>) -> tensor<256xf32>
  %a0 = stablehlo.slice %all [0:768] : (tensor<12288xbf16>) -> tensor<768xbf16>
  %a1 = stablehlo.slice %all [6144:6912] : (tensor<12288xbf16>) -> tensor<768xbf16>
  %a2 = stablehlo.concatenate %a0, %a1, dim = 0 : (tensor<768xbf16>, tensor<768xbf16>) -> tensor<1536xbf16>
  %a = stablehlo.reshape %a2 : (tensor<1536xbf16>) -> tensor<2x8x96xbf16>
  %q = stablehlo.dot_general %a, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x8x96xbf16>, tensor<2x96x16xbf16>) -> tensor<2x8x16xf32>
  %q1 = stablehlo.reshape %q : (tensor<2x8x16xf32>) -> tensor<256xf32>
  check.expect_eq %p, %q1 : tensor<256xf32>
  // a transpose of what is read backwards; the second line fills the rest
  %x = stablehlo.slice %f [0:64] : (tensor<12288xf32>) -> tensor<64xf32>
  %m = stablehlo.custom_call @otrn.nest(%x) {backend_config = "move f32 in0[31] -> out0[0] (8:-1:4, 4:8:1)\nmove f32 in0[32] -> out0[32] (32:1:1)"} : (tensor<64xf32>) -> tensor<64xf32>
  %y = stablehlo.slice %f [24:56] : (tensor<12288xf32>) -> tensor<32xf32>
  %y1 = stablehlo.reshape %y : (tensor<32xf32>) -> tensor<4x8xf32>
  %y2 = stablehlo.reverse %y1, dims = [1] : tensor<4x8xf32>
  %y3 = stablehlo.transpose %y2, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %y4 = stablehlo.reshape %y3 : (tensor<8x4xf32>) -> tensor<32xf32>
  %z = stablehlo.slice %f [32:64] : (tensor<12288xf32>) -> tensor<32xf32>
  %want = stablehlo.concatenate %y4, %z, dim = 0 : (tensor<32xf32>, tensor<32xf32>) -> tensor<64xf32>
  check.expect_eq %m, %want : tensor<64xf32>
  return
}
