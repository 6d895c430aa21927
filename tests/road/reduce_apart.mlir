// Two sums in one reduction have nothing to do with each other: each is folded as it would be alone, in partial sums. One after
// another the ones would be lost beside 2^24.
// run: otrn dis %s
// expect: stablehlo.reduce (
// run: otrn run %s --check
// expect: result 0: tensor<i64>: 1024
// expect: result 1: tensor<f32>: 1.67782e+07
func.func @main() -> (tensor<i64>, tensor<f32>) {
  %i = stablehlo.iota dim = 0 : tensor<1024xi32>
  %n = stablehlo.constant dense<0> : tensor<1024xi32>
  %first = stablehlo.compare EQ, %i, %n : (tensor<1024xi32>, tensor<1024xi32>) -> tensor<1024xi1>
  %large = stablehlo.constant dense<16777216.0> : tensor<1024xf32>
  %one = stablehlo.constant dense<1.0> : tensor<1024xf32>
  %x = stablehlo.select %first, %large, %one : tensor<1024xi1>, tensor<1024xf32>
  %c = stablehlo.constant dense<1> : tensor<1024xi64>
  %k = stablehlo.optimization_barrier %c : tensor<1024xi64>
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %zerof = stablehlo.constant dense<0.0> : tensor<f32>
  %r:2 = stablehlo.reduce(%k init: %zero), (%x init: %zerof) across dimensions = [0] : (tensor<1024xi64>, tensor<1024xf32>, tensor<i64>, tensor<f32>) -> (tensor<i64>, tensor<f32>)
   reducer(%a: tensor<i64>, %b: tensor<i64>) (%u: tensor<f32>, %v: tensor<f32>) {
    %s = stablehlo.add %a, %b : tensor<i64>
    %t = stablehlo.add %u, %v : tensor<f32>
    stablehlo.return %s, %t : tensor<i64>, tensor<f32>
  }
  return %r#0, %r#1 : tensor<i64>, tensor<f32>
}
