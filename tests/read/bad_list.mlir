// A constant with a ragged list.
// run: otrn compile %s -o %t/out.otrn
// expect: bad_list.mlir:6:
// expect: error[PARSE]: a list with fewer elements than its dimension
// status: 1
func.func public @main() -> tensor<2x2xi32> { %0 = stablehlo.constant dense<[[1, 2], [3]]> : tensor<2x2xi32>
  return %0 : tensor<2x2xi32>
}
