// A product goes to the program behind it, and so do its reshapes that are read later.
// run: otrn compile %s --cache=off --dump=epilogue
// expect: stablehlo.broadcast_in_dim
// expect: stablehlo.dot_general
// expect: tensor<512x6x6xf32>) -> tensor<18432xf32>
// expect: product = 0
func.func public @main(%x: tensor<512x1x6xf32>, %y: tensor<512x1x6xf16>) -> (tensor<18432xf32>, tensor<512x6x6xf32>, tensor<512x6x6xf32>) {
  %dot = stablehlo.dot_general %x, %x, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<512x1x6xf32>, tensor<512x1x6xf32>) -> tensor<512x6x6xf32>
  %line = stablehlo.reshape %dot : (tensor<512x6x6xf32>) -> tensor<18432xf32>
  %y1 = stablehlo.convert %y : (tensor<512x1x6xf16>) -> tensor<512x1x6xf32>
  %y2 = stablehlo.reshape %y1 : (tensor<512x1x6xf32>) -> tensor<512x6xf32>
  %ys = stablehlo.broadcast_in_dim %y2, dims = [0, 2] : (tensor<512x6xf32>) -> tensor<512x6x6xf32>
  %less = stablehlo.subtract %dot, %ys : tensor<512x6x6xf32>
  func.return %line, %less, %ys : tensor<18432xf32>, tensor<512x6x6xf32>, tensor<512x6x6xf32>
}
