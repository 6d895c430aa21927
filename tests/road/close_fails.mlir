// Four representable values are too many, zero is too few where at least one is asked for.
// run: otrn eval %s; test $? = 1 && otrn run %s
// expect: error[CHECK]
// expect: 4 ulp apart
// expect: error[CHECK]
// expect: 0 to 3 ulp apart
// status: 1
func.func public @main() {
  %a = stablehlo.constant dense<[1.0, 1.0]> : tensor<2xf32>
  %b = stablehlo.constant dense<[1.0, 0x3F800004]> : tensor<2xf32>
  "check.expect_close"(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> ()
  return
}
