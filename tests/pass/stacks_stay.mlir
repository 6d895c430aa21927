// A sum over the whole stack comes before the work behind the loop: it stays there, and so does what only the sum reads.
// run: otrn compile %s --dump=stacks
// expect: :3 = "stablehlo.while"
// expect: stablehlo.multiply
// expect: stablehlo.reduce
// run: otrn compile %s --disable-pass=stacks --dump=narrow >%t/a; otrn compile %s --dump=stacks >%t/b; grep -c while %t/a; test $(grep -c dynamic_update_slice %t/a) = $(grep -c dynamic_update_slice %t/b)
func.func public @main(%w: tensor<4x64x512xf32> {tf.aliasing_output = 0 : i32}, %m: tensor<4x64x512xf32> {tf.aliasing_output = 1 : i32},
                       %x: tensor<128x64xf32>, %t: tensor<f32>) -> (tensor<4x64x512xf32>, tensor<4x64x512xf32>, tensor<128x64xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %empty = stablehlo.constant dense<0.0> : tensor<4x64x512xf32>
  %l:3 = stablehlo.while(%i = %zero, %y = %x, %g = %empty) : tensor<i32>, tensor<128x64xf32>, tensor<4x64x512xf32>
   cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %last = stablehlo.constant dense<3> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %back = stablehlo.subtract %last, %i : tensor<i32>
    %piece = stablehlo.dynamic_slice %w, %back, %z, %z, sizes = [1, 64, 512] : (tensor<4x64x512xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x512xf32>
    %wi = stablehlo.reshape %piece : (tensor<1x64x512xf32>) -> tensor<64x512xf32>
    %h = stablehlo.dot_general %y, %wi, contracting_dims = [1] x [0] : (tensor<128x64xf32>, tensor<64x512xf32>) -> tensor<128x512xf32>
    %next = stablehlo.dot_general %h, %wi, contracting_dims = [1] x [1] : (tensor<128x512xf32>, tensor<64x512xf32>) -> tensor<128x64xf32>
    %gi = stablehlo.dot_general %y, %h, contracting_dims = [0] x [0] : (tensor<128x64xf32>, tensor<128x512xf32>) -> tensor<64x512xf32>
    %g1 = stablehlo.reshape %gi : (tensor<64x512xf32>) -> tensor<1x64x512xf32>
    %gs = stablehlo.dynamic_update_slice %g, %g1, %back, %z, %z : (tensor<4x64x512xf32>, tensor<1x64x512xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x64x512xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %next, %gs : tensor<i32>, tensor<128x64xf32>, tensor<4x64x512xf32>
  }
  %sq = stablehlo.multiply %l#2, %l#2 : tensor<4x64x512xf32>
  %z0 = stablehlo.constant dense<0.0> : tensor<f32>
  %norm = stablehlo.reduce(%sq init: %z0) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<4x64x512xf32>, tensor<f32>) -> tensor<f32>
  %two = stablehlo.add %t, %t : tensor<f32>
  %rate = stablehlo.broadcast_in_dim %norm, dims = [] : (tensor<f32>) -> tensor<4x64x512xf32>
  %a = stablehlo.constant dense<0.9> : tensor<4x64x512xf32>
  %b = stablehlo.constant dense<0.1> : tensor<4x64x512xf32>
  %ma = stablehlo.multiply %a, %m : tensor<4x64x512xf32>
  %gb = stablehlo.multiply %b, %l#2 : tensor<4x64x512xf32>
  %gr = stablehlo.multiply %gb, %rate : tensor<4x64x512xf32>
  %m1 = stablehlo.add %ma, %gr : tensor<4x64x512xf32>
  %step = stablehlo.multiply %rate, %m1 : tensor<4x64x512xf32>
  %w1 = stablehlo.subtract %w, %step : tensor<4x64x512xf32>
  return %w1, %m1, %l#1 : tensor<4x64x512xf32>, tensor<4x64x512xf32>, tensor<128x64xf32>
}
