// Constants of every kind keep their bits.
// run: otrn eval %s
// run: otrn compile %s --dump=read -o %t/out.otrn >%t/a.mlir
// run: otrn compile %t/a.mlir --dump=read -o %t/out.otrn >%t/b.mlir
// run: cmp %t/a.mlir %t/b.mlir && cat %t/a.mlir
// expect: dense<[0.000000e+00, -0.000000e+00, 0x7FC00000, 0xFF800000, 1.000000e+00, 1.000000e+00, 3.40282347e+38, 1.401298e-45]> : tensor<8xf32>
// expect: dense<(1.000000e+00,-2.000000e+00)> : tensor<2xcomplex<f32>>
// expect: dense<true> : tensor<9xi1>
// expect: dense<[true, false, true, false, false, false, false, false, true]> : tensor<9xi1>
// expect: dense<7> : tensor<2x2xi32>
// expect: dense<[18446744073709551615, 0]> : tensor<2xui64>
// expect: dense<> : tensor<2x0x3xf32>
func.func public @main() {
  %f = stablehlo.constant dense<[0.0, -0.0, 0x7FC00000, 0xFF800000, 1.00000005e+00, 1.0, 3.40282347e+38, 1.4e-45]> : tensor<8xf32>
  %c = stablehlo.constant dense<[(1.0, -2.0), (1.0, -2.0)]> : tensor<2xcomplex<f32>>
  %t = stablehlo.constant dense<true> : tensor<9xi1>
  %b = stablehlo.constant dense<"0x0501"> : tensor<9xi1>
  %bb = stablehlo.constant dense<[true, false, true, false, false, false, false, false, true]> : tensor<9xi1>
  check.expect_eq %b, %bb : tensor<9xi1>
  %s = stablehlo.constant dense<[[7, 7], [7, 7]]> : tensor<2x2xi32>
  %u = stablehlo.constant dense<[18446744073709551615, 0]> : tensor<2xui64>
  %e = stablehlo.constant dense<[[], []]> : tensor<2x0x3xf32>
  %h = stablehlo.constant dense<"0x0000803F000000C0"> : tensor<2xf32>
  %hh = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf32>
  check.expect_eq %h, %hh : tensor<2xf32>
  %half = stablehlo.constant dense<[1.1, 65519.0, 6.0e-8]> : tensor<3xf16>
  %halves = stablehlo.constant dense<[0x3C66, 0x7BFF, 0x0001]> : tensor<3xf16>
  check.expect_eq %half, %halves : tensor<3xf16>
  %i4 = stablehlo.constant dense<[-8, 7, -1]> : tensor<3xi4>
  %r = stablehlo.constant dense_resource<blob> : tensor<2xi32>
  %rr = stablehlo.constant dense<[1, -1]> : tensor<2xi32>
  check.expect_eq %r, %rr : tensor<2xi32>
  return
}

{-#
  dialect_resources: {
    builtin: {
      blob: "0x0400000001000000FFFFFFFF",
      other: "0x01000000"
    }
  },
  external_resources: { mlir_reproducer: { verify_each: true } }
#-}
