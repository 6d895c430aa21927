// Two layers as JAX names them; the second is a function of its own, whose names begin anew. Line 3 has a product and,
// beside it, a kernel on GpSimd that takes longer than any one instruction of the product.
func.func public @main(%x: tensor<512x256xf32>, %w: tensor<256x512xf32>, %v: tensor<512x256xf32>) -> (tensor<512x256xf32>, tensor<16x256xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x512xf32>) -> tensor<512x512xf32> loc(#a)
  %1 = stablehlo.dot_general %0, %v, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x256xf32>) -> tensor<512x256xf32> loc(#b)
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x512xf32>) -> tensor<512x512xf32> loc(#c)
  %3 = func.call @layer(%2, %v) : (tensor<512x512xf32>, tensor<512x256xf32>) -> tensor<512x256xf32> loc(#d)
  %4 = stablehlo.multiply %3, %x : tensor<512x256xf32> loc(#e)
  %5 = stablehlo.slice %x [0:16, 0:256] : (tensor<512x256xf32>) -> tensor<16x256xf32> loc(#g)
  %6 = "stablehlo.sort"(%5) <{dimension = 1 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<16x256xf32>) -> tensor<16x256xf32> loc(#g)
  return %4, %6 : tensor<512x256xf32>, tensor<16x256xf32>
}
func.func private @layer(%x: tensor<512x512xf32>, %v: tensor<512x256xf32>) -> tensor<512x256xf32> {
  %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x256xf32>) -> tensor<512x256xf32> loc(#f)
  return %0 : tensor<512x256xf32>
}
#m1 = loc("model.py":3:1)
#m2 = loc("model.py":9:1)
#a = loc("jit(step)/jvp(layer_0)/mlp/dot_general"(#m1))
#b = loc("jit(step)/transpose(jvp(layer_0))/mlp/dot_general"(#m1))
#c = loc("jit(step)/transpose(jvp(jvp()))/checkpoint/rematted_computation/layer_0/mlp/dot_general"(#m1))
#d = loc("jit(step)/jvp(layer_1)/while/body/closed_call"(#m2))
#e = loc("jit(step)/optimizer/mul"(#m1))
#f = loc("attn/dot_general"(#m2))
#g = loc("jit(step)/jvp(layer_0)/mlp/sort"(#m1))
