// Queries, keys, values, a gradient, flags, and numbers per row for scores_numbers.mlir and scores_given.mlir.
func.func public @main() -> (tensor<2x512x64xf32>, tensor<2x512x64xf32>, tensor<2x512x64xf32>, tensor<2x512x64xf32>, tensor<2x512x512xi1>, tensor<2x512xf32>, tensor<2x512xf32>) {
  %qi = stablehlo.iota dim = 0 : tensor<65536xf32>
  %qc = stablehlo.constant dense<0.33> : tensor<65536xf32>
  %qm = stablehlo.multiply %qi, %qc : tensor<65536xf32>
  %qs = stablehlo.sine %qm : tensor<65536xf32>
  %q = stablehlo.reshape %qs : (tensor<65536xf32>) -> tensor<2x512x64xf32>
  %ki = stablehlo.iota dim = 0 : tensor<65536xf32>
  %kc = stablehlo.constant dense<0.44> : tensor<65536xf32>
  %km = stablehlo.multiply %ki, %kc : tensor<65536xf32>
  %ks = stablehlo.sine %km : tensor<65536xf32>
  %k = stablehlo.reshape %ks : (tensor<65536xf32>) -> tensor<2x512x64xf32>
  %vi = stablehlo.iota dim = 0 : tensor<65536xf32>
  %vc = stablehlo.constant dense<0.55> : tensor<65536xf32>
  %vm = stablehlo.multiply %vi, %vc : tensor<65536xf32>
  %vs = stablehlo.sine %vm : tensor<65536xf32>
  %v = stablehlo.reshape %vs : (tensor<65536xf32>) -> tensor<2x512x64xf32>
  %gi = stablehlo.iota dim = 0 : tensor<65536xf32>
  %gc = stablehlo.constant dense<0.66> : tensor<65536xf32>
  %gm = stablehlo.multiply %gi, %gc : tensor<65536xf32>
  %gs = stablehlo.sine %gm : tensor<65536xf32>
  %g = stablehlo.reshape %gs : (tensor<65536xf32>) -> tensor<2x512x64xf32>
  %ui = stablehlo.iota dim = 0 : tensor<524288xf32>
  %uc = stablehlo.constant dense<0.77> : tensor<524288xf32>
  %um = stablehlo.multiply %ui, %uc : tensor<524288xf32>
  %us = stablehlo.sine %um : tensor<524288xf32>
  %u = stablehlo.reshape %us : (tensor<524288xf32>) -> tensor<2x512x512xf32>
  %bound = stablehlo.constant dense<0.8> : tensor<2x512x512xf32>
  %keep = stablehlo.compare LT, %u, %bound, FLOAT : (tensor<2x512x512xf32>, tensor<2x512x512xf32>) -> tensor<2x512x512xi1>
  %ai = stablehlo.iota dim = 0 : tensor<1024xf32>
  %ac = stablehlo.constant dense<0.3> : tensor<1024xf32>
  %am = stablehlo.multiply %ai, %ac : tensor<1024xf32>
  %as = stablehlo.sine %am : tensor<1024xf32>
  %a = stablehlo.reshape %as : (tensor<1024xf32>) -> tensor<2x512xf32>
  %nine = stablehlo.constant dense<9.0> : tensor<2x512xf32>
  %high = stablehlo.constant dense<32.0> : tensor<2x512xf32>
  %m = stablehlo.add %a, %high : tensor<2x512xf32>
  %l = stablehlo.add %a, %nine : tensor<2x512xf32>
  return %q, %k, %v, %g, %keep, %m, %l : tensor<2x512x64xf32>, tensor<2x512x64xf32>, tensor<2x512x64xf32>, tensor<2x512x64xf32>, tensor<2x512x512xi1>, tensor<2x512xf32>, tensor<2x512xf32>
}
