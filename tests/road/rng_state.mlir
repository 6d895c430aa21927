// A generator's state is ui64 by the specification; other states are read, for old programs have them, and not run.
// run: otrn compile %s --emit=mlir -o %t/p.mlir
// run: otrn eval %s || otrn run %s
// status: 1
// expect: error[VERIFY]: stablehlo.rng_bit_generator: the state must be ui64[2] or ui64[3], kept by the result (I1)
// expect: error[VERIFY]: stablehlo.rng_bit_generator: the state must be ui64[2] or ui64[3] (I1)
func.func public @main() -> tensor<8xi32> {
  %s = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %0:2 = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<4xi32>) -> (tensor<4xi32>, tensor<8xi32>)
  return %0#1 : tensor<8xi32>
}
