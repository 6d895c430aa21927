// One row by its number: the stride between rows stays with the transfer although it takes only one.
// run: otrn compile %s --cache=off -o %t/a.otrn && otrn dis %t/a.otrn
// expect: dma_indirect dst=result0[0] src=arg0[0]
// expect: s0=2048
// expect: dma_indirect dst=result1[0]
// expect: d0=2048
func.func @main(%t: tensor<512x2048xf32>, %i: tensor<1x1xi32>, %u: tensor<1x2048xf32>) -> (tensor<1x2048xf32>, tensor<512x2048xf32>) {
  %0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 2048>}> : (tensor<512x2048xf32>, tensor<1x1xi32>) -> tensor<1x2048xf32>
  %1 = "stablehlo.scatter"(%t, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<512x2048xf32>, tensor<1x1xi32>, tensor<1x2048xf32>) -> tensor<512x2048xf32>
  return %0, %1 : tensor<1x2048xf32>, tensor<512x2048xf32>
}
