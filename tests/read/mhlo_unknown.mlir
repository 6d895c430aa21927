// An operation of XLA's dialect that StableHLO does not have: refused by its name, with its line.
// run: otrn compile %s --dump=read
// expect: mhlo_unknown.mlir:8:10: error[UNSUPPORTED]: the op 'mhlo.stochastic_convert' is not known to opentrn
// status: 1
module @m {
  func.func public @main(%a: tensor<4xf32>, %b: tensor<4xui32>) -> tensor<4xbf16> {
    %0 = "mhlo.copy"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "mhlo.stochastic_convert"(%0, %b) : (tensor<4xf32>, tensor<4xui32>) -> tensor<4xbf16>
    return %1 : tensor<4xbf16>
  }
}
