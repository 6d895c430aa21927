// A comparator that orders floats by their bits, as older exporters write it: -NaN first, NaN last.
// run: otrn eval %s
// run: otrn run %s --disable-pass=fold
func.func public @main() {
  %x = stablehlo.constant dense<[0x7FC00000, 1.0, -2.0, 0xFFC00000, 0.0, -0.0]> : tensor<6xf32>
  %s = "stablehlo.sort"(%x) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %max = stablehlo.constant dense<2147483647> : tensor<i32>
    %0 = stablehlo.bitcast_convert %p : (tensor<f32>) -> tensor<i32>
    %1 = stablehlo.compare LT, %0, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = stablehlo.xor %0, %max : tensor<i32>
    %3 = stablehlo.select %1, %2, %0 : tensor<i1>, tensor<i32>
    %4 = stablehlo.bitcast_convert %q : (tensor<f32>) -> tensor<i32>
    %5 = stablehlo.compare LT, %4, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %6 = stablehlo.xor %4, %max : tensor<i32>
    %7 = stablehlo.select %5, %6, %4 : tensor<i1>, tensor<i32>
    %8 = stablehlo.compare LT, %3, %7, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %8 : tensor<i1>
  }) {dimension = 0 : i64, is_stable = true} : (tensor<6xf32>) -> tensor<6xf32>
  %bits = stablehlo.bitcast_convert %s : (tensor<6xf32>) -> tensor<6xui32>
  check.expect_eq_const %bits, dense<[0xFFC00000, 0xC0000000, 0x80000000, 0x0, 0x3F800000, 0x7FC00000]> : tensor<6xui32>
  return
}
