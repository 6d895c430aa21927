// Arguments and results in another order than row by row: transposed at the border, each device its part; a result that
// is a transposed argument lies as that does when it may.
// run: otrn compile %s --dump=layouts,dce -o %t/out.otrn
// expect: @main(%arg0: tensor<3x4xf32>
// expect: otrn.sharding = "2,1|0,1"
// expect: -> (tensor<4x3xf32>
// expect: tensor<3x4xf32>
// expect: permutation = array<i64: 1, 0>
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%a: tensor<8x3xf32> {mhlo.layout_mode = "{0,1}", sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                         %b: tensor<8x3xf32> {mhlo.layout_mode = "default", sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
      -> (tensor<3x8xf32> {mhlo.layout_mode = "auto"}, tensor<8x3xf32> {mhlo.layout_mode = "{0,1}"}) {
    %0 = stablehlo.transpose %b, dims = [1, 0] : (tensor<8x3xf32>) -> tensor<3x8xf32>
    %1 = stablehlo.sine %0 : tensor<3x8xf32>
    %2 = stablehlo.add %a, %b : tensor<8x3xf32>
    return %1, %2 : tensor<3x8xf32>, tensor<8x3xf32>
  }
}
