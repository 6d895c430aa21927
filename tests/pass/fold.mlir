// Exact arithmetic on constants is done once; a splat stays one element; exp is left to the chip, whose
// bits are not ours to guess.
// run: otrn compile %s --dump=fold,dce -o %t/out.otrn
// expect: dense<7>
// expect: : tensor<1000xf32>
// expect: stablehlo.exponential
// expect-not: broadcast_in_dim
func.func public @main() -> (tensor<i32>, tensor<1000xf32>, tensor<f32>) {
  %a = stablehlo.constant dense<3> : tensor<i32>
  %b = stablehlo.constant dense<4> : tensor<i32>
  %c = stablehlo.add %a, %b : tensor<i32>
  %h = stablehlo.constant dense<0.5> : tensor<f32>
  %w = stablehlo.broadcast_in_dim %h, dims = [] : (tensor<f32>) -> tensor<1000xf32>
  %v = stablehlo.multiply %w, %w : tensor<1000xf32>
  %e = stablehlo.exponential %h : tensor<f32>
  return %c, %v, %e : tensor<i32>, tensor<1000xf32>, tensor<f32>
}
