// A softmax of large rows, and a small chain that GpSimd takes as one kernel.
func.func public @main(%x: tensor<1024x1024xf32>, %s: tensor<7xf32>) -> (tensor<1024x1024xf32>, tensor<7xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.add %x, %x : tensor<1024x1024xf32>
  %e = stablehlo.exponential %2 : tensor<1024x1024xf32>
  %r = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  %b = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
  %d = stablehlo.divide %e, %b : tensor<1024x1024xf32>
  // the kernel: its costliest member is neither its first nor its last
  %t = stablehlo.add %s, %s : tensor<7xf32>
  %p = stablehlo.power %t, %s : tensor<7xf32>
  %u = stablehlo.subtract %p, %s : tensor<7xf32>
  return %d, %u : tensor<1024x1024xf32>, tensor<7xf32>
}
