// What indices alone tell passes a barrier, so that a causal mask is seen for what it is in work done again; arguments do not.
// run: otrn compile %s --dump=cse -o %t/out.otrn
// expect: stablehlo.optimization_barrier
// expect: "stablehlo.select"(%2, %6, %3)
func.func public @main(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = stablehlo.iota dim = 0 : tensor<64x64xi32>
  %1 = stablehlo.iota dim = 1 : tensor<64x64xi32>
  %2 = stablehlo.compare GE, %0, %1, SIGNED : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi1>
  %z = stablehlo.constant dense<0.0> : tensor<64x64xf32>
  %3 = stablehlo.select %2, %x, %z : tensor<64x64xi1>, tensor<64x64xf32>
  %4:2 = stablehlo.optimization_barrier %2, %x : tensor<64x64xi1>, tensor<64x64xf32>
  %5 = stablehlo.exponential %4#1 : tensor<64x64xf32>
  %6 = stablehlo.select %4#0, %5, %z : tensor<64x64xi1>, tensor<64x64xf32>
  return %3, %6 : tensor<64x64xf32>, tensor<64x64xf32>
}
