// The neighbours of narrow floats: across zero (FNUZ types have no -0), at powers of two, up to the largest.
// run: otrn eval %s
// run: otrn run %s --disable-pass=fold
func.func public @main() {
  %a = stablehlo.constant dense<[0.0, 1.0, -1.0, 448.0, -0.001953125]> : tensor<5xf8E4M3FN>
  %b = stablehlo.constant dense<[-1.0, 2.0, 0.0, 0.0, 5.0]> : tensor<5xf8E4M3FN>
  %r = chlo.next_after %a, %b : tensor<5xf8E4M3FN>, tensor<5xf8E4M3FN> -> tensor<5xf8E4M3FN>
  check.expect_eq_const %r, dense<[-0.001953125, 1.125, -0.9375, 416.0, -0.0]> : tensor<5xf8E4M3FN>
  %c = stablehlo.constant dense<[-0.0009765625, 0.0, 240.0]> : tensor<3xf8E4M3FNUZ>
  %d = stablehlo.constant dense<[1.0, -1.0, 240.0]> : tensor<3xf8E4M3FNUZ>
  %s = chlo.next_after %c, %d : tensor<3xf8E4M3FNUZ>, tensor<3xf8E4M3FNUZ> -> tensor<3xf8E4M3FNUZ>
  check.expect_eq_const %s, dense<[0.0, -0.0009765625, 240.0]> : tensor<3xf8E4M3FNUZ>
  %e = stablehlo.constant dense<[1.0, 4.0, 0.5]> : tensor<3xf4E2M1FN>
  %f = stablehlo.constant dense<[6.0, 0.0, -1.0]> : tensor<3xf4E2M1FN>
  %t = chlo.next_after %e, %f : tensor<3xf4E2M1FN>, tensor<3xf4E2M1FN> -> tensor<3xf4E2M1FN>
  check.expect_eq_const %t, dense<[1.5, 3.0, 0.0]> : tensor<3xf4E2M1FN>
  %g = stablehlo.constant dense<[1.0, 1.0]> : tensor<2xf8E8M0FNU>
  %h = stablehlo.constant dense<[8.0, 0.25]> : tensor<2xf8E8M0FNU>
  %u = chlo.next_after %g, %h : tensor<2xf8E8M0FNU>, tensor<2xf8E8M0FNU> -> tensor<2xf8E8M0FNU>
  check.expect_eq_const %u, dense<[2.0, 0.5]> : tensor<2xf8E8M0FNU>
  return
}
