// XLA writes elementwise operations that StableHLO lacks as calls to its own dialect (every exact GELU of torch_xla).
// run: otrn eval %s
// run: otrn run %s --disable-pass=fold
// run: otrn compile %s --disable-pass=fold --dump=expand -o %t/out.otrn
// expect: chlo.erf
// expect-not: custom_call @mhlo
func.func public @main() {
  %x = stablehlo.constant dense<[-2.0, -0.5, 0.0, 0.25, 1.0, 3.0]> : tensor<6xf32>
  %want = chlo.erf %x : tensor<6xf32> -> tensor<6xf32>
  %erf = stablehlo.custom_call @mhlo.erf(%x) {mhlo.attributes = {}, mhlo.version = 1 : i64} : (tensor<6xf32>) -> tensor<6xf32>
  check.expect_eq %erf, %want : tensor<6xf32>
  %tan = stablehlo.tan %x : tensor<6xf32>
  %called = stablehlo.custom_call @mhlo.tan(%x) : (tensor<6xf32>) -> tensor<6xf32>
  check.expect_eq %called, %tan : tensor<6xf32>
  return
}
