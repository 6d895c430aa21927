// Whoever refuses an operation says why: types, sizes, regions, places, runs.
// run: otrn check %s; test $? = 3
// expect: dot_general: the engines have no f64
// expect: atan2: no instruction of the engines does it
// expect: add: as a row program of integers it would not be quicker
// expect: pad: the number around it is known only when it runs
// expect: transpose: its runs of neighbours are too short for transfers
// expect: reduce: its region is more than one sum, maximum or minimum
// expect: gather: indices of i64: transfers by index take 32-bit integers
// expect: tanh: 12 elements: one kernel costs less than transfers in and out
// run: otrn compile %s --explain | grep f64
// expect: dot_general: the engines have no f64
// run: sed 's/atan2/atan3/' %s >%t/b.mlir; otrn check %t/b.mlir; test $? = 5
// expect: did you mean 'stablehlo.atan2'
// run: sed 's/2000x30xi32>, %%c/2000x31xi32>, %%c/' %s >%t/c.mlir; otrn check %t/c.mlir; test $? = 1
// expect: error[
// expect: verdict: not a valid program
func.func @main(%a: tensor<64x64xf64>, %b: tensor<2000x30xi32>, %c: tensor<4x3xf32>, %d: tensor<8x16x16x4xf32>, %e: tensor<5000x8xf32>, %i: tensor<100x1xi64>, %z: tensor<f32>) -> (tensor<64x64xf64>, tensor<2000x30xi32>, tensor<4x3xf32>, tensor<4xf32>, tensor<8x4x16x16xf32>, tensor<100x8xf32>, tensor<5008x8xf32>, tensor<5000x8xf32>) {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<64x64xf64>, tensor<64x64xf64>) -> tensor<64x64xf64>
  %1 = stablehlo.add %b, %b : tensor<2000x30xi32>
  %2 = stablehlo.tanh %c : tensor<4x3xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = stablehlo.reduce(%d init: %zero) applies stablehlo.multiply across dimensions = [0, 1, 2] : (tensor<8x16x16x4xf32>, tensor<f32>) -> tensor<4xf32>
  %4 = stablehlo.transpose %d, dims = [0, 3, 1, 2] : (tensor<8x16x16x4xf32>) -> tensor<8x4x16x16xf32>
  %5 = "stablehlo.gather"(%e, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>, indices_are_sorted = false}> : (tensor<5000x8xf32>, tensor<100x1xi64>) -> tensor<100x8xf32>
  %6 = stablehlo.pad %e, %z, low = [4, 0], high = [4, 0], interior = [0, 0] : (tensor<5000x8xf32>, tensor<f32>) -> tensor<5008x8xf32>
  %7 = stablehlo.atan2 %e, %e : tensor<5000x8xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<64x64xf64>, tensor<2000x30xi32>, tensor<4x3xf32>, tensor<4xf32>, tensor<8x4x16x16xf32>, tensor<100x8xf32>, tensor<5008x8xf32>, tensor<5000x8xf32>
}
