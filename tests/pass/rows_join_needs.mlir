// A row program with an operand that follows from another one's sums, over the rows that one reads: they stay two, as the first has to be
// through before the second begins.
// run: otrn compile %s --cache=off --dump=join -o %t/a.otrn > %t/join && grep -c '"otrn.rows"' %t/join
// expect: 3
// run: otrn run %t/a.otrn && otrn eval %s
// expect: result 0: tensor<f32>: 3.67002e+06
// expect: result 0: tensor<f32>: 3.67002e+06
func.func public @main() -> tensor<f32> {
  %i = stablehlo.iota dim = 0 : tensor<1048576xi32>
  %mask = stablehlo.constant dense<7> : tensor<1048576xi32>
  %low = stablehlo.and %i, %mask : tensor<1048576xi32>
  %x = stablehlo.convert %low : (tensor<1048576xi32>) -> tensor<1048576xf32>
  %there = stablehlo.optimization_barrier %x : tensor<1048576xf32>
  %rows = stablehlo.reshape %there : (tensor<1048576xf32>) -> tensor<128x8192xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %bound = stablehlo.constant dense<1.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<128x8192xf32>
  %sum = stablehlo.reduce(%rows init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<128x8192xf32>, tensor<f32>) -> tensor<f32>
  %little = stablehlo.compare LE, %sum, %bound : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %chosen = stablehlo.select %little, %zeros, %rows : tensor<i1>, tensor<128x8192xf32>
  %again = stablehlo.reduce(%chosen init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<128x8192xf32>, tensor<f32>) -> tensor<f32>
  return %again : tensor<f32>
}
