// Types narrower than a byte: bits of one type as another, and what they hold for NaN.
// run: otrn eval %s
// run: otrn run %s --disable-pass=fold
func.func public @main() {
  %a = stablehlo.constant dense<[-2, 127, 26]> : tensor<3xi8>
  %halves = stablehlo.bitcast_convert %a : (tensor<3xi8>) -> tensor<3x2xi4>
  check.expect_eq_const %halves, dense<[[-2, -1], [-1, 7], [-6, 1]]> : tensor<3x2xi4>
  %back = stablehlo.bitcast_convert %halves : (tensor<3x2xi4>) -> tensor<3xi8>
  check.expect_eq_const %back, dense<[-2, 127, 26]> : tensor<3xi8>
  %bits = stablehlo.bitcast_convert %a : (tensor<3xi8>) -> tensor<3x8xi1>
  check.expect_eq_const %bits, dense<[[false, true, true, true, true, true, true, true], [true, true, true, true, true, true, true, false], [false, true, false, true, true, false, false, false]]> : tensor<3x8xi1>
  %bytes = stablehlo.bitcast_convert %bits : (tensor<3x8xi1>) -> tensor<3xui8>
  check.expect_eq_const %bytes, dense<[254, 127, 26]> : tensor<3xui8>
  %pairs = stablehlo.bitcast_convert %halves : (tensor<3x2xi4>) -> tensor<3x2x2xui2>
  check.expect_eq_const %pairs, dense<[[[2, 3], [3, 3]], [[3, 3], [3, 1]], [[2, 2], [1, 0]]]> : tensor<3x2x2xui2>
  %tiny = stablehlo.bitcast_convert %halves : (tensor<3x2xi4>) -> tensor<3x2xf4E2M1FN>
  %wide = stablehlo.convert %tiny : (tensor<3x2xf4E2M1FN>) -> tensor<3x2xf32>
  check.expect_eq_const %wide, dense<[[-4.0, -6.0], [-6.0, 6.0], [-1.0, 0.5]]> : tensor<3x2xf32>

  // formats without NaN get -0 for it, whatever its sign
  %nan = stablehlo.constant dense<[0x7FC00000, 0xFFC00000]> : tensor<2xf32>
  %none = stablehlo.convert %nan : (tensor<2xf32>) -> tensor<2xf4E2M1FN>
  %code = stablehlo.bitcast_convert %none : (tensor<2xf4E2M1FN>) -> tensor<2xui4>
  check.expect_eq_const %code, dense<8> : tensor<2xui4>
  return
}
