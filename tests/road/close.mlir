// expect_close counts representable values, between the limits the op gives; complex: the worse part.
// run: otrn eval %s
// run: otrn run %s --disable-pass=fold
func.func public @main() {
  %a = stablehlo.constant dense<[1.0, -1.0, 0.0, 0x7FC00000]> : tensor<4xf32>
  %b = stablehlo.constant dense<[0x3F800003, 0xBF800003, 0x80000003, 0xFFC00001]> : tensor<4xf32>
  "check.expect_close"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> ()
  %c = stablehlo.constant dense<[1.0, -1.0, 0.0]> : tensor<3xf32>
  %d = stablehlo.constant dense<[0x3F80000A, 0xBF80000A, 0x8000000A]> : tensor<3xf32>
  "check.expect_close"(%c, %d) {min_ulp_difference = 10 : i64, max_ulp_difference = 10 : i64} : (tensor<3xf32>, tensor<3xf32>) -> ()
  %z = stablehlo.complex %c, %c : tensor<3xcomplex<f32>>
  %y = stablehlo.complex %c, %d : tensor<3xcomplex<f32>>
  "check.expect_close"(%z, %y) {min_ulp_difference = 10 : i64, max_ulp_difference = 10 : i64} : (tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>) -> ()
  return
}
