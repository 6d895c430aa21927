// A product whose sum over devices somebody waits for goes before a gradient of weights, which is only put into a stack, with the row program and
// the transpose that make its operand.
// run: otrn compile %s --cache=off --dump=order
// expect: dynamic_slice
// expect: stablehlo.transpose
// expect: tensor<2048x256xbf16>, tensor<256x512xbf16>
// expect: tensor<512x2048xbf16>, tensor<2048x64xbf16>
func.func public @main(%x: tensor<512x2048xbf16>, %g: tensor<2048x64xbf16>, %q: tensor<8x4x2048x64xbf16>, %w: tensor<256x512xbf16>)
    -> (tensor<8x512x64xbf16>, tensor<2048x512xbf16>) attributes {mhlo.num_replicas = 2 : i32} {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<8x512x64xbf16>
  %first = stablehlo.constant dense<0.0> : tensor<2048x512xbf16>
  %i, %stack, %y = stablehlo.while(%i0 = %zero, %stack0 = %none, %y0 = %first) : tensor<i32>, tensor<8x512x64xbf16>, tensor<2048x512xbf16>
  cond {
    %n = stablehlo.constant dense<8> : tensor<i32>
    %on = stablehlo.compare LT, %i0, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %on : tensor<i1>
  } do {
    %p = stablehlo.dynamic_slice %q, %i0, %zero, %zero, %zero, sizes = [1, 4, 2048, 64] : (tensor<8x4x2048x64xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x2048x64xbf16>
    %dw = stablehlo.dot_general %x, %g, contracting_dims = [1] x [0] : (tensor<512x2048xbf16>, tensor<2048x64xbf16>) -> tensor<512x64xbf16>
    %dw0 = stablehlo.multiply %dw, %dw : tensor<512x64xbf16>
    %dw1 = stablehlo.reshape %dw0 : (tensor<512x64xbf16>) -> tensor<1x512x64xbf16>
    %s = stablehlo.reshape %p : (tensor<1x4x2048x64xbf16>) -> tensor<4x2048x64xbf16>
    %q2 = stablehlo.tanh %s : tensor<4x2048x64xbf16>
    %q3 = stablehlo.add %q2, %s : tensor<4x2048x64xbf16>
    %qt = stablehlo.transpose %q3, dims = [1, 0, 2] : (tensor<4x2048x64xbf16>) -> tensor<2048x4x64xbf16>
    %qr = stablehlo.reshape %qt : (tensor<2048x4x64xbf16>) -> tensor<2048x256xbf16>
    %dx = stablehlo.dot_general %qr, %w, contracting_dims = [1] x [0] : (tensor<2048x256xbf16>, tensor<256x512xbf16>) -> tensor<2048x512xbf16>
    %sum = "stablehlo.all_reduce"(%dx) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
      %c = stablehlo.add %a, %b : tensor<bf16>
      stablehlo.return %c : tensor<bf16>
    }) : (tensor<2048x512xbf16>) -> tensor<2048x512xbf16>
    %y1 = stablehlo.add %sum, %y0 : tensor<2048x512xbf16>
    %stack1 = stablehlo.dynamic_update_slice %stack0, %dw1, %i0, %zero, %zero : (tensor<8x512x64xbf16>, tensor<1x512x64xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x512x64xbf16>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %i1 = stablehlo.add %i0, %one : tensor<i32>
    stablehlo.return %i1, %stack1, %y1 : tensor<i32>, tensor<8x512x64xbf16>, tensor<2048x512xbf16>
  }
  func.return %stack, %y : tensor<8x512x64xbf16>, tensor<2048x512xbf16>
}
