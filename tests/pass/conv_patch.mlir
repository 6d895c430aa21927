// Pictures cut into patches by a convolution that steps by its kernel's size: a product over them; so is the gradient by the kernel, whose taps are as far
// apart as it is large. One that steps by less, or has something around the picture, stays a convolution.
// run: otrn compile %s --dump=inner -o %t/out.otrn
// expect: "stablehlo.dot_general"
// expect: (tensor<2x3x7x16x7x16xf32>, tensor<8x3x16x16xf32>) -> tensor<2x7x7x8xf32>
// expect: (tensor<3x2x7x16x7x16xf32>, tensor<8x2x7x7xf32>) -> tensor<3x16x16x8xf32>
// expect: window_strides = array<i64: 8, 8>
func.func public @main(%x: tensor<2x3x112x112xf32>, %w: tensor<8x3x16x16xf32>, %g: tensor<8x2x7x7xf32>) -> (tensor<2x8x7x7xf32>, tensor<3x8x16x16xf32>, tensor<2x8x13x13xf32>) {
  %y = "stablehlo.convolution"(%x, %w) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, feature_group_count = 1 : i64, padding = dense<0> : tensor<2x2xi64>, window_strides = array<i64: 16, 16>}> : (tensor<2x3x112x112xf32>, tensor<8x3x16x16xf32>) -> tensor<2x8x7x7xf32>
  %t = stablehlo.transpose %x, dims = [1, 0, 2, 3] : (tensor<2x3x112x112xf32>) -> tensor<3x2x112x112xf32>
  %d = "stablehlo.convolution"(%t, %g) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, feature_group_count = 1 : i64, padding = dense<0> : tensor<2x2xi64>, rhs_dilation = array<i64: 16, 16>}> : (tensor<3x2x112x112xf32>, tensor<8x2x7x7xf32>) -> tensor<3x8x16x16xf32>
  %o = "stablehlo.convolution"(%x, %w) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, feature_group_count = 1 : i64, padding = dense<0> : tensor<2x2xi64>, window_strides = array<i64: 8, 8>}> : (tensor<2x3x112x112xf32>, tensor<8x3x16x16xf32>) -> tensor<2x8x13x13xf32>
  return %y, %d, %o : tensor<2x8x7x7xf32>, tensor<3x8x16x16xf32>, tensor<2x8x13x13xf32>
}
