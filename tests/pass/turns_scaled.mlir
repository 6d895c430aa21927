// Attention as PyTorch writes it: queries and keys put by heads, keys turned, both scaled. Scaling goes before the transposes, which products read through; what
// rotary positions do is done in the order that the product reads.
// run: otrn compile %s --dump=dce -o %t/out.otrn
// expect: stablehlo.concatenate
// expect: stablehlo.add
// expect: stablehlo.multiply
// expect: stablehlo.dot_general
// expect-not: stablehlo.transpose
func.func public @main(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>) -> tensor<2x4x8x8xf32> {
  %c = stablehlo.constant dense<0.3> : tensor<2x4x8x16xf32>
  %d = stablehlo.constant dense<0.3> : tensor<2x4x16x8xf32>
  %q0 = stablehlo.transpose %q, dims = [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %q1 = stablehlo.multiply %q0, %c : tensor<2x4x8x16xf32>
  %a = stablehlo.slice %k [0:2, 0:8, 0:4, 0:8] : (tensor<2x8x4x16xf32>) -> tensor<2x8x4x8xf32>
  %b = stablehlo.slice %k [0:2, 0:8, 0:4, 8:16] : (tensor<2x8x4x16xf32>) -> tensor<2x8x4x8xf32>
  %x = stablehlo.subtract %a, %b : tensor<2x8x4x8xf32>
  %y = stablehlo.add %b, %a : tensor<2x8x4x8xf32>
  %r = stablehlo.concatenate %x, %y, dim = 3 : (tensor<2x8x4x8xf32>, tensor<2x8x4x8xf32>) -> tensor<2x8x4x16xf32>
  %k0 = stablehlo.transpose %r, dims = [0, 2, 1, 3] : (tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32>
  %k1 = stablehlo.transpose %k0, dims = [0, 1, 3, 2] : (tensor<2x4x8x16xf32>) -> tensor<2x4x16x8xf32>
  %k2 = stablehlo.multiply %k1, %d : tensor<2x4x16x8xf32>
  %s = stablehlo.dot_general %q1, %k2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x8x8xf32>
  return %s : tensor<2x4x8x8xf32>
}
