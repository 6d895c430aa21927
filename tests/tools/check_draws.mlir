// What random numbers by an exact algorithm cost, on the line of the entry that asks for them, and what to write instead.
// run: otrn check %s --gpsimd-limit=100
// expect: random numbers computed by an exact algorithm: 2 lines
// expect: check_draws.mlir:12: threefry, its time on the lines of functions called there
// expect: 50.0%
// expect: check_draws.mlir:13: philox
// expect: jax.config.update("jax_default_prng_impl", "rbg")
// run: sed 's/THREE_FRY/DEFAULT/; s/PHILOX/DEFAULT/' %s >%t/own.mlir; otrn check %t/own.mlir --gpsimd-limit=100; echo own
// expect: own
// expect-not: own.mlir:12: threefry
func.func @main(%s: tensor<2xui64>) -> (tensor<64x512xui32>, tensor<64x512xui32>) {
  %0 = func.call @bits(%s) : (tensor<2xui64>) -> tensor<64x512xui32>
  %1, %2 = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<2xui64>) -> (tensor<2xui64>, tensor<64x512xui32>)
  return %0, %2 : tensor<64x512xui32>, tensor<64x512xui32>
}
func.func private @bits(%s: tensor<2xui64>) -> tensor<64x512xui32> {
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<64x512xui32>)
  return %1 : tensor<64x512xui32>
}
