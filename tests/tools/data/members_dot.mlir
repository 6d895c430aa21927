// A dense layer whose bias and activation are done as the product's tiles leave PSUM.
func.func public @main(%x: tensor<512x512xf32>, %w: tensor<512x512xf32>, %b: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %1 = stablehlo.add %0, %b : tensor<512x512xf32>
  %2 = stablehlo.tanh %1 : tensor<512x512xf32>
  return %2 : tensor<512x512xf32>
}
