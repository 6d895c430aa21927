// The norm of a narrow gradient and its update, over other rows, both widen it for themselves: no program writes it wide.
// run: otrn compile %s --dump=rows -o %t/out.otrn | grep 'otrn.rows\|}) :'
// expect: otrn.rows"(%arg1)
// expect: }) : (tensor<512x2048xbf16>) -> tensor<128xf32>
// expect: otrn.rows"(%arg1, %8, %arg0)
// run: otrn eval %S/data/rows_widen_in.mlir --output=%t/in >%t/log; otrn run %s --check --input=%t/in/result_0.npy,%t/in/result_1.npy >%t/log && echo right
// expect: right
module {
  func.func public @main(%w: tensor<512x2048xf32>, %g: tensor<512x2048xbf16>) -> (tensor<512x2048xf32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %wide = stablehlo.convert %g : (tensor<512x2048xbf16>) -> tensor<512x2048xf32>
    %square = stablehlo.multiply %wide, %wide : tensor<512x2048xf32>
    %sum = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<512x2048xf32>, tensor<f32>) -> tensor<f32>
    %scale = stablehlo.rsqrt %sum : tensor<f32>
    %all = stablehlo.broadcast_in_dim %scale, dims = [] : (tensor<f32>) -> tensor<512x2048xf32>
    %clipped = stablehlo.multiply %wide, %all : tensor<512x2048xf32>
    %new = stablehlo.subtract %w, %clipped : tensor<512x2048xf32>
    return %new, %sum : tensor<512x2048xf32>, tensor<f32>
  }
}
