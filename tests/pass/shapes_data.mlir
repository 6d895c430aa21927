// A size that is computed from data is told with its op and dimension.
// run: otrn run %s --input=%S/../tools/data/f32_2x3.npy
// status: 1
// expect: shapes_data.mlir:10:3: error[UNSUPPORTED]: stablehlo.dynamic_iota: the size of dimension 0 of result 0 does not follow from the shapes
func.func public @main(%x: tensor<?x3xf32>) -> tensor<?xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_slice %x, %zero, %zero, sizes = [1, 1] : (tensor<?x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1xf32>
  %1 = stablehlo.reshape %0 : (tensor<1x1xf32>) -> tensor<1xf32>
  %2 = stablehlo.convert %1 : (tensor<1xf32>) -> tensor<1xi32>
  %3 = stablehlo.dynamic_iota %2, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
  return %3 : tensor<?xf32>
}
