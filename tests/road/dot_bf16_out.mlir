// bf16 operands and result: rounded once, when the sum leaves PSUM.
// run: otrn eval %s
// run: otrn run %s --threads=1
// run: otrn run %s --host=portable --threads=2
func.func public @main() {
  // small whole numbers: sums are exact in any order
  %li = stablehlo.iota dim = 0 : tensor<1280xi32>
  %l7 = stablehlo.constant dense<7> : tensor<1280xi32>
  %l3 = stablehlo.constant dense<3> : tensor<1280xi32>
  %lm = stablehlo.remainder %li, %l7 : tensor<1280xi32>
  %ls = stablehlo.subtract %lm, %l3 : tensor<1280xi32>
  %lc = stablehlo.convert %ls : (tensor<1280xi32>) -> tensor<1280xbf16>
  %l = stablehlo.reshape %lc : (tensor<1280xbf16>) -> tensor<20x64xbf16>
  %ri = stablehlo.iota dim = 0 : tensor<1920xi32>
  %r5 = stablehlo.constant dense<5> : tensor<1920xi32>
  %r2 = stablehlo.constant dense<2> : tensor<1920xi32>
  %rm = stablehlo.remainder %ri, %r5 : tensor<1920xi32>
  %rs = stablehlo.subtract %rm, %r2 : tensor<1920xi32>
  %rc = stablehlo.convert %rs : (tensor<1920xi32>) -> tensor<1920xbf16>
  %r = stablehlo.reshape %rc : (tensor<1920xbf16>) -> tensor<64x30xbf16>
  %got = stablehlo.dot_general %l, %r, contracting_dims = [1] x [0] : (tensor<20x64xbf16>, tensor<64x30xbf16>) -> tensor<20x30xbf16>
  %lf = stablehlo.convert %l : (tensor<20x64xbf16>) -> tensor<20x64xf32>
  %rf = stablehlo.convert %r : (tensor<64x30xbf16>) -> tensor<64x30xf32>
  %lw = stablehlo.broadcast_in_dim %lf, dims = [0, 2] : (tensor<20x64xf32>) -> tensor<20x30x64xf32>
  %rw = stablehlo.broadcast_in_dim %rf, dims = [2, 1] : (tensor<64x30xf32>) -> tensor<20x30x64xf32>
  %p = stablehlo.multiply %lw, %rw : tensor<20x30x64xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<20x30x64xf32>, tensor<f32>) -> tensor<20x30xf32>
  %want = stablehlo.convert %sum : (tensor<20x30xf32>) -> tensor<20x30xbf16>
  stablehlo.custom_call @check.expect_eq(%got, %want) {has_side_effect = true} : (tensor<20x30xbf16>, tensor<20x30xbf16>) -> ()
  return
}
