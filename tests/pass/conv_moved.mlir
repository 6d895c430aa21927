// A transposed convolution as PyTorch writes it: ordering its kernel makes ops, which moves the table of operands.
// run: otrn compile %s --dump=convs
// expect: stablehlo.convolution
func.func public @main(%arg0: tensor<1x4x5xf32>, %arg1: tensor<4x8x3xf32>) -> (tensor<1x8x7xf32>) {
%1 = "stablehlo.reshape"(%arg1) : (tensor<4x8x3xf32>) -> tensor<1x4x8x3xf32>
%2 = "stablehlo.transpose"(%1) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<1x4x8x3xf32>) -> tensor<1x8x4x3xf32>
%3 = "stablehlo.reshape"(%2) : (tensor<1x8x4x3xf32>) -> tensor<8x4x3xf32>
%4 = "stablehlo.reverse"(%3) <{dimensions = array<i64: 2>}> : (tensor<8x4x3xf32>) -> tensor<8x4x3xf32>
%5 = "stablehlo.convolution"(%arg0, %4) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1>, padding = dense<[[2, 2]]> : tensor<1x2xi64>, rhs_dilation = array<i64: 1>, window_strides = array<i64: 1>}> : (tensor<1x4x5xf32>, tensor<8x4x3xf32>) -> tensor<1x8x7xf32>
"func.return"(%5) : (tensor<1x8x7xf32>) -> ()
}
