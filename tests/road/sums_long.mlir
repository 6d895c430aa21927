// Few rows that are long (pass/sums.c): sums, maxima and a norm over them are cut into as many parts as there are partitions. The cut is seen in
// the first reductions; the chip agrees with the evaluator. A length without divisors stays one row.
// run: otrn compile %s --dump=sums --cache=off -o %t/a.otrn > %t/sums && grep -c 'tensor<126x2340xf32>, tensor<f32>) -> tensor<126xf32>' %t/sums
// expect: 2
// run: otrn run %t/a.otrn --check --output=%t/a && otrn eval %s --output=%t/b
// run: otrn eval %S/data/sums_long_same.mlir --input=%t/a/result_0.npy,%t/a/result_1.npy,%t/a/result_2.npy,%t/b/result_0.npy,%t/b/result_1.npy,%t/b/result_2.npy
func.func public @main() -> (tensor<3x312x315xf32>, tensor<3xf32>, tensor<2xf32>) {
  %i = stablehlo.iota dim = 0 : tensor<294840xf32>
  %c = stablehlo.constant dense<0.37> : tensor<294840xf32>
  %e = stablehlo.multiply %i, %c : tensor<294840xf32>
  %y = stablehlo.sine %e : tensor<294840xf32>
  %x = stablehlo.reshape %y : (tensor<294840xf32>) -> tensor<3x312x315xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.multiply %x, %x : tensor<3x312x315xf32>
  %sum = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [1, 2] : (tensor<3x312x315xf32>, tensor<f32>) -> tensor<3xf32>
  %max = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1, 2] : (tensor<3x312x315xf32>, tensor<f32>) -> tensor<3xf32>
  %r = stablehlo.rsqrt %sum : tensor<3xf32>
  %b = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<3xf32>) -> tensor<3x312x315xf32>
  %n = stablehlo.multiply %x, %b : tensor<3x312x315xf32>
  %z = stablehlo.slice %y [0:131074] : (tensor<294840xf32>) -> tensor<131074xf32>
  %w = stablehlo.reshape %z : (tensor<131074xf32>) -> tensor<2x65537xf32>
  %t = stablehlo.reduce(%w init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x65537xf32>, tensor<f32>) -> tensor<2xf32>
  return %n, %max, %t : tensor<3x312x315xf32>, tensor<3xf32>, tensor<2xf32>
}
