// The neighbour of a number is one of its own type, whatever the others compute in.
// run: otrn run %s --auto-cast=all --auto-cast-type=tf32 --disable-pass=fold
// run: otrn run %s --auto-cast=all --auto-cast-type=bf16 --disable-pass=fold
// run: otrn run %s --cast-ops=next_after=bf16; test $? = 2
// expect: `next_after` does not compute in a narrower type
func.func @main() {
  %a = stablehlo.constant dense<[1.0, 0.0]> : tensor<2xf32>
  %b = stablehlo.constant dense<[2.0, -1.0]> : tensor<2xf32>
  %r = chlo.next_after %a, %b : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
  %i = stablehlo.bitcast_convert %r : (tensor<2xf32>) -> tensor<2xui32>
  check.expect_eq_const %i, dense<[1065353217, 2147483649]> : tensor<2xui32>
  return
}
