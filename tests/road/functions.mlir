// log(1 + x) and exp(x) - 1 of large tensors go without GpSimd and keep their last places: beside the same in fp64, from
// 2^-70 up, below zero, where 1 + x is nothing, at infinity.
// run: otrn eval %s
// run: otrn run %s --disable-pass=fold
// run: otrn run %s --disable-pass=fold --target=trn1 --host=portable --check
// run: otrn compile %s --disable-pass=fold -o %t/out.otrn && otrn dis %t/out.otrn | grep -c 'f32.*\(log_plus_one\|exponential_minus_one\)' || true
// expect: 0
func.func public @main() {
  %i = stablehlo.iota dim = 0 : tensor<8192xf32>
  %step = stablehlo.constant dense<0.0062> : tensor<8192xf32>
  %low = stablehlo.constant dense<-48.5> : tensor<8192xf32>
  %e = stablehlo.multiply %i, %step : tensor<8192xf32>
  %p = stablehlo.add %e, %low : tensor<8192xf32>
  %up = stablehlo.exponential %p : tensor<8192xf32>
  %down = stablehlo.negate %up : tensor<8192xf32>
  %minus = stablehlo.constant dense<-1.0> : tensor<8192xf32>
  %below = stablehlo.maximum %down, %minus : tensor<8192xf32>
  %log_up = stablehlo.log_plus_one %up : tensor<8192xf32>
  %log_below = stablehlo.log_plus_one %below : tensor<8192xf32>
  %exp_up = stablehlo.exponential_minus_one %up : tensor<8192xf32>
  %exp_down = stablehlo.exponential_minus_one %down : tensor<8192xf32>
  %up64 = stablehlo.convert %up : (tensor<8192xf32>) -> tensor<8192xf64>
  %below64 = stablehlo.convert %below : (tensor<8192xf32>) -> tensor<8192xf64>
  %down64 = stablehlo.convert %down : (tensor<8192xf32>) -> tensor<8192xf64>
  %a = stablehlo.log_plus_one %up64 : tensor<8192xf64>
  %b = stablehlo.log_plus_one %below64 : tensor<8192xf64>
  %c = stablehlo.exponential_minus_one %up64 : tensor<8192xf64>
  %d = stablehlo.exponential_minus_one %down64 : tensor<8192xf64>
  %a32 = stablehlo.convert %a : (tensor<8192xf64>) -> tensor<8192xf32>
  %b32 = stablehlo.convert %b : (tensor<8192xf64>) -> tensor<8192xf32>
  %c32 = stablehlo.convert %c : (tensor<8192xf64>) -> tensor<8192xf32>
  %d32 = stablehlo.convert %d : (tensor<8192xf64>) -> tensor<8192xf32>
  "check.expect_close"(%log_up, %a32) {max_ulp_difference = 5 : i64} : (tensor<8192xf32>, tensor<8192xf32>) -> ()
  "check.expect_close"(%log_below, %b32) {max_ulp_difference = 5 : i64} : (tensor<8192xf32>, tensor<8192xf32>) -> ()
  "check.expect_close"(%exp_up, %c32) {max_ulp_difference = 6 : i64} : (tensor<8192xf32>, tensor<8192xf32>) -> ()
  "check.expect_close"(%exp_down, %d32) {max_ulp_difference = 6 : i64} : (tensor<8192xf32>, tensor<8192xf32>) -> ()
  return
}
