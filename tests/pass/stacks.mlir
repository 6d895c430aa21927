// The stack of g has elementwise work behind the loop that needs nothing but it and what is there before: it is done in the loop, on the piece at hand, as
// the epilogue of the product that makes it. The stack is gone, results take the memory of the arguments that they update, piece by piece, and
// every bit is that of the work behind the loop. The rate is made behind the loop and stands before it now.
// run: otrn run %S/data/stacks_in.mlir --output=%t
// run: otrn eval %s --input=%t/result_0.npy,%t/result_1.npy,%t/result_2.npy,%t/result_3.npy --output=%t/eval
// run: mkdir %t/apart %t/one %t/two; otrn run %s --input=%t/result_0.npy,%t/result_1.npy,%t/result_2.npy,%t/result_3.npy --output=%t/apart --disable-pass=stacks
// run: otrn run %s --input=%t/result_0.npy,%t/result_1.npy,%t/result_2.npy,%t/result_3.npy --output=%t/one --lnc=1 --check
// run: otrn run %s --input=%t/result_0.npy,%t/result_1.npy,%t/result_2.npy,%t/result_3.npy --output=%t/two --lnc=2 --check
// run: for k in 0 1 2; do cmp %t/apart/result_$k.npy %t/one/result_$k.npy && cmp %t/apart/result_$k.npy %t/two/result_$k.npy || exit 1; done
// run: otrn compile %s --dump=stacks
// run: otrn compile %s --lnc=1 --dump=nest | grep '^#'
// expect: :4 = "stablehlo.while"
// expect: dynamic_slice"(%arg1
// expect: # 2 loop
// expect: dot dot_general: %7 %13 -> %14
// expect: dot dot_general: %7 %14 %16 %0 %9 %13 -> %17 %18
// expect: end while
// expect-not: dense<1.000000e-01> : tensor<4x64x512xf32>
// expect-not: dynamic dynamic_update_slice
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
  %two = stablehlo.add %t, %t : tensor<f32>
  %rate = stablehlo.broadcast_in_dim %two, dims = [] : (tensor<f32>) -> tensor<4x64x512xf32>
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
