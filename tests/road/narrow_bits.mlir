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

  // two leading zeros are more than i2 holds: they wrap, as every number of a type does
  %two = stablehlo.constant dense<[0, 1, -2]> : tensor<3xi2>
  %zeros = stablehlo.count_leading_zeros %two : tensor<3xi2>
  %more = stablehlo.convert %zeros : (tensor<3xi2>) -> tensor<3xi32>
  check.expect_eq_const %more, dense<[-2, 1, 0]> : tensor<3xi32>

  // the one NaN of FNUZ types has its sign bit set: first in total order
  %fnuz = stablehlo.constant dense<[0x80, 0xFF, 0x00]> : tensor<3xf8E4M3FNUZ>
  %least = stablehlo.constant dense<[0xFF, 0x80, 0x80]> : tensor<3xf8E4M3FNUZ>
  %before = stablehlo.compare LT, %fnuz, %least, TOTALORDER : (tensor<3xf8E4M3FNUZ>, tensor<3xf8E4M3FNUZ>) -> tensor<3xi1>
  check.expect_eq_const %before, dense<[true, false, false]> : tensor<3xi1>

  // mantissas are cut where they lie, a subnormal number's too
  %half = stablehlo.constant dense<[0x0005, 0x03FF, 0x8300, 0x0480]> : tensor<4xf16>
  %cut = stablehlo.reduce_precision %half, format = e5m2 : tensor<4xf16>
  check.expect_eq_const %cut, dense<[0x0000, 0x0400, 0x8300, 0x0400]> : tensor<4xf16>
  %byte = stablehlo.constant dense<[0x07, 0x85, 0x13]> : tensor<3xf8E3M4>
  %less = stablehlo.reduce_precision %byte, format = e3m2 : tensor<3xf8E3M4>
  check.expect_eq_const %less, dense<[0x08, 0x84, 0x14]> : tensor<3xf8E3M4>

  // powers of two: halves go up, less than the least goes to it, zero is NaN
  %steps = stablehlo.constant dense<[1.5, 3.0, 5.9, 2.6e38, 0.0, 1.0e-40, -1.0]> : tensor<7xf32>
  %power = stablehlo.convert %steps : (tensor<7xf32>) -> tensor<7xf8E8M0FNU>
  %codes = stablehlo.bitcast_convert %power : (tensor<7xf8E8M0FNU>) -> tensor<7xui8>
  check.expect_eq_const %codes, dense<[128, 129, 129, 255, 255, 0, 255]> : tensor<7xui8>
  return
}
