// Text that bytecode has no form for is kept as it is; what the writer said of that is not told with another error.
// run: otrn compile %s -o %t/out.otrn
// status: 1
// expect: error[UNSUPPORTED]: stablehlo.custom_call @elsewhere
// expect-not: --emit=mlir
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<2xf32>) {
      %1 = stablehlo.custom_call @elsewhere(%b) : (tensor<2xf32>) -> tensor<2xf32>
      sdy.return %1 : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
