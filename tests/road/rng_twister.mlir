// MT19937 with the seed of C++'s std::mt19937: the standard tells its 10000th word, 4123659995; behind it a state goes on where it was left, with
// pairs of words, the first above. A state of another size is refused.
// run: otrn eval %s
// run: otrn run %s
// run: sed 's/625/626/g' %s >%t/wrong.mlir; otrn run %t/wrong.mlir
// status: 1
// expect: result 0: tensor<1xui32>: 4123659995
// expect: result 1: tensor<2xui64>: 3115285607064788384 13745897616175743722
// expect: result 0: tensor<1xui32>: 4123659995
// expect: result 1: tensor<2xui64>: 3115285607064788384 13745897616175743722
// expect: the state has the wrong size for the algorithm
func.func public @main() -> (tensor<1xui32>, tensor<2xui64>) {
  %zeros = stablehlo.constant dense<0> : tensor<625xui32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %first = stablehlo.constant dense<1> : tensor<i32>
  %words = stablehlo.constant dense<624> : tensor<i32>
  %seed = stablehlo.constant dense<5489> : tensor<1xui32>
  %used = stablehlo.constant dense<624> : tensor<1xui32>
  %by = stablehlo.constant dense<1812433253> : tensor<1xui32>
  %shift = stablehlo.constant dense<30> : tensor<1xui32>
  %a = stablehlo.dynamic_update_slice %zeros, %seed, %zero : (tensor<625xui32>, tensor<1xui32>, tensor<i32>) -> tensor<625xui32>
  %b = stablehlo.dynamic_update_slice %a, %used, %words : (tensor<625xui32>, tensor<1xui32>, tensor<i32>) -> tensor<625xui32>
  %r:2 = stablehlo.while(%i = %first, %s = %b) : tensor<i32>, tensor<625xui32>
    cond {
      %more = stablehlo.compare LT, %i, %words : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %before = stablehlo.subtract %i, %first : tensor<i32>
      %x = stablehlo.dynamic_slice %s, %before, sizes = [1] : (tensor<625xui32>, tensor<i32>) -> tensor<1xui32>
      %high = stablehlo.shift_right_logical %x, %shift : tensor<1xui32>
      %mixed = stablehlo.xor %x, %high : tensor<1xui32>
      %scaled = stablehlo.multiply %mixed, %by : tensor<1xui32>
      %n = stablehlo.convert %i : (tensor<i32>) -> tensor<ui32>
      %place = stablehlo.reshape %n : (tensor<ui32>) -> tensor<1xui32>
      %word = stablehlo.add %scaled, %place : tensor<1xui32>
      %new = stablehlo.dynamic_update_slice %s, %word, %i : (tensor<625xui32>, tensor<1xui32>, tensor<i32>) -> tensor<625xui32>
      %next = stablehlo.add %i, %first : tensor<i32>
      stablehlo.return %next, %new : tensor<i32>, tensor<625xui32>
    }
  %skipped:2 = stablehlo.rng_bit_generator %r#1, algorithm = MERSENNE_TWISTER : (tensor<625xui32>) -> (tensor<625xui32>, tensor<9999xui32>)
  %one:2 = stablehlo.rng_bit_generator %skipped#0, algorithm = MERSENNE_TWISTER : (tensor<625xui32>) -> (tensor<625xui32>, tensor<1xui32>)
  %pairs:2 = stablehlo.rng_bit_generator %one#0, algorithm = MERSENNE_TWISTER : (tensor<625xui32>) -> (tensor<625xui32>, tensor<2xui64>)
  return %one#1, %pairs#1 : tensor<1xui32>, tensor<2xui64>
}
