// An op that opentrn does not know is refused by name, at its place.
// run: otrn compile %s -o %t/out.otrn
// expect: bad_op.mlir:7:10: error[UNSUPPORTED]: the op 'stablehlo.frobnicate' is not known to opentrn
// status: 1
module {
  func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.frobnicate %a : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
