// The sum in the gradient of a softmax where one loop makes the product o = y v and stacks it, transposed, and a later loop makes y again: it is
// that of o * dy there too (pass/twins.c), and the chip agrees with the evaluator. Where that loop reads o of another iteration, or makes
// another y, it stays.
// run: otrn compile %s --cache=off --dump=assoc -o %t/a.otrn | grep -c '}) : (tensor<4x128x32xf32>, tensor<f32>)'
// expect: 1
// run: otrn compile %s --cache=off --dump=assoc -o %t/a.otrn | grep -c '}) : (tensor<4x128x1024xf32>, tensor<f32>)'
// expect: 3
// run: otrn run %t/a.otrn --check --output=%t/a && otrn eval %s --output=%t/b
// run: otrn eval %S/data/assoc_loops_same.mlir --input=%t/a/result_0.npy,%t/a/result_1.npy,%t/a/result_2.npy,%t/b/result_0.npy,%t/b/result_1.npy,%t/b/result_2.npy
func.func @main() -> (tensor<3x4x128xf32>, tensor<3x4x128xf32>, tensor<3x4x128xf32>) {
  %i0 = stablehlo.iota dim = 0 : tensor<1572864xf32>
  %c = stablehlo.constant dense<0.37> : tensor<1572864xf32>
  %j0 = stablehlo.multiply %i0, %c : tensor<1572864xf32>
  %s0 = stablehlo.sine %j0 : tensor<1572864xf32>
  %scores = stablehlo.reshape %s0 : (tensor<1572864xf32>) -> tensor<3x4x128x1024xf32>
  %k = stablehlo.iota dim = 0 : tensor<393216xf32>
  %ck = stablehlo.constant dense<0.53> : tensor<393216xf32>
  %jk = stablehlo.multiply %k, %ck : tensor<393216xf32>
  %sk = stablehlo.sine %jk : tensor<393216xf32>
  %bk = stablehlo.constant dense<1.5> : tensor<393216xf32>
  %vk = stablehlo.add %sk, %bk : tensor<393216xf32>
  %vn = stablehlo.convert %vk : (tensor<393216xf32>) -> tensor<393216xbf16>
  %values = stablehlo.reshape %vn : (tensor<393216xbf16>) -> tensor<3x4x1024x32xbf16>
  %l = stablehlo.iota dim = 0 : tensor<16384xf32>
  %cl = stablehlo.constant dense<0.71> : tensor<16384xf32>
  %jl = stablehlo.multiply %l, %cl : tensor<16384xf32>
  %sl = stablehlo.sine %jl : tensor<16384xf32>
  %bl = stablehlo.constant dense<1.5> : tensor<16384xf32>
  %dl = stablehlo.add %sl, %bl : tensor<16384xf32>
  %dk = stablehlo.convert %dl : (tensor<16384xf32>) -> tensor<16384xbf16>
  %dn = stablehlo.reshape %dk : (tensor<16384xbf16>) -> tensor<4x128x32xbf16>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %o = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %outs0 = stablehlo.constant dense<0.0> : tensor<3x128x4x32xbf16>
  %sums0 = stablehlo.constant dense<0.0> : tensor<3x4x128xf32>
  %f:3 = stablehlo.while(%i = %o, %outs = %outs0, %sums = %sums0) : tensor<i32>, tensor<3x128x4x32xbf16>, tensor<3x4x128xf32>
    cond {
      %go = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %a = stablehlo.dynamic_slice %scores, %i, %o, %o, %o, sizes = [1, 4, 128, 1024] : (tensor<3x4x128x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x128x1024xf32>
      %a1 = stablehlo.reshape %a : (tensor<1x4x128x1024xf32>) -> tensor<4x128x1024xf32>
      %v = stablehlo.dynamic_slice %values, %i, %o, %o, %o, sizes = [1, 4, 1024, 32] : (tensor<3x4x1024x32xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x1024x32xbf16>
      %v1 = stablehlo.reshape %v : (tensor<1x4x1024x32xbf16>) -> tensor<4x1024x32xbf16>
      %e = stablehlo.exponential %a1 : tensor<4x128x1024xf32>
      %sum = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [2] : (tensor<4x128x1024xf32>, tensor<f32>) -> tensor<4x128xf32>
      %wide = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<4x128xf32>) -> tensor<4x128x1024xf32>
      %y = stablehlo.divide %e, %wide : tensor<4x128x1024xf32>
      %yn = stablehlo.convert %y : (tensor<4x128x1024xf32>) -> tensor<4x128x1024xbf16>
      %out = stablehlo.dot_general %yn, %v1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x128x1024xbf16>, tensor<4x1024x32xbf16>) -> tensor<4x128x32xbf16>
      %turned = stablehlo.transpose %out, dims = [1, 0, 2] : (tensor<4x128x32xbf16>) -> tensor<128x4x32xbf16>
      %piece = stablehlo.reshape %turned : (tensor<128x4x32xbf16>) -> tensor<1x128x4x32xbf16>
      %number = stablehlo.reshape %sum : (tensor<4x128xf32>) -> tensor<1x4x128xf32>
      %outs1 = stablehlo.dynamic_update_slice %outs, %piece, %i, %o, %o, %o : (tensor<3x128x4x32xbf16>, tensor<1x128x4x32xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x128x4x32xbf16>
      %sums1 = stablehlo.dynamic_update_slice %sums, %number, %i, %o, %o : (tensor<3x4x128xf32>, tensor<1x4x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x128xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %outs1, %sums1 : tensor<i32>, tensor<3x128x4x32xbf16>, tensor<3x4x128xf32>
    }
  %b:4 = stablehlo.while(%i = %o, %r1 = %sums0, %r2 = %sums0, %r3 = %sums0) : tensor<i32>, tensor<3x4x128xf32>, tensor<3x4x128xf32>, tensor<3x4x128xf32>
    cond {
      %go = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %j = stablehlo.subtract %two, %i : tensor<i32>
      %a = stablehlo.dynamic_slice %scores, %j, %o, %o, %o, sizes = [1, 4, 128, 1024] : (tensor<3x4x128x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x128x1024xf32>
      %a1 = stablehlo.reshape %a : (tensor<1x4x128x1024xf32>) -> tensor<4x128x1024xf32>
      %v = stablehlo.dynamic_slice %values, %j, %o, %o, %o, sizes = [1, 4, 1024, 32] : (tensor<3x4x1024x32xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x1024x32xbf16>
      %v1 = stablehlo.reshape %v : (tensor<1x4x1024x32xbf16>) -> tensor<4x1024x32xbf16>
      %e = stablehlo.exponential %a1 : tensor<4x128x1024xf32>
      %sum = stablehlo.dynamic_slice %f#2, %j, %o, %o, sizes = [1, 4, 128] : (tensor<3x4x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x128xf32>
      %number = stablehlo.reshape %sum : (tensor<1x4x128xf32>) -> tensor<4x128xf32>
      %wide = stablehlo.broadcast_in_dim %number, dims = [0, 1] : (tensor<4x128xf32>) -> tensor<4x128x1024xf32>
      %y = stablehlo.divide %e, %wide : tensor<4x128x1024xf32>
      %yn = stablehlo.convert %y : (tensor<4x128x1024xf32>) -> tensor<4x128x1024xbf16>
      %out = stablehlo.dynamic_slice %f#1, %j, %o, %o, %o, sizes = [1, 128, 4, 32] : (tensor<3x128x4x32xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x128x4x32xbf16>
      %out1 = stablehlo.reshape %out : (tensor<1x128x4x32xbf16>) -> tensor<128x4x32xbf16>
      %mean = stablehlo.transpose %out1, dims = [1, 0, 2] : (tensor<128x4x32xbf16>) -> tensor<4x128x32xbf16>
      %dy = stablehlo.multiply %dn, %mean : tensor<4x128x32xbf16>
      %p = stablehlo.dot_general %dy, %v1, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x128x32xbf16>, tensor<4x1024x32xbf16>) -> tensor<4x128x1024xf32>
      %yw = stablehlo.convert %yn : (tensor<4x128x1024xbf16>) -> tensor<4x128x1024xf32>
      %x = stablehlo.multiply %p, %yw : tensor<4x128x1024xf32>
      %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [2] : (tensor<4x128x1024xf32>, tensor<f32>) -> tensor<4x128xf32>
      // of the iteration before
      %w = stablehlo.dynamic_slice %values, %i, %o, %o, %o, sizes = [1, 4, 1024, 32] : (tensor<3x4x1024x32xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x1024x32xbf16>
      %w1 = stablehlo.reshape %w : (tensor<1x4x1024x32xbf16>) -> tensor<4x1024x32xbf16>
      %q = stablehlo.dot_general %dy, %w1, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x128x32xbf16>, tensor<4x1024x32xbf16>) -> tensor<4x128x1024xf32>
      %x2 = stablehlo.multiply %q, %yw : tensor<4x128x1024xf32>
      %rb = stablehlo.reduce(%x2 init: %z) applies stablehlo.add across dimensions = [2] : (tensor<4x128x1024xf32>, tensor<f32>) -> tensor<4x128xf32>
      // of something else
      %other = stablehlo.cosine %a1 : tensor<4x128x1024xf32>
      %x3 = stablehlo.multiply %p, %other : tensor<4x128x1024xf32>
      %rc = stablehlo.reduce(%x3 init: %z) applies stablehlo.add across dimensions = [2] : (tensor<4x128x1024xf32>, tensor<f32>) -> tensor<4x128xf32>
      %p1 = stablehlo.reshape %r : (tensor<4x128xf32>) -> tensor<1x4x128xf32>
      %p2 = stablehlo.reshape %rb : (tensor<4x128xf32>) -> tensor<1x4x128xf32>
      %p3 = stablehlo.reshape %rc : (tensor<4x128xf32>) -> tensor<1x4x128xf32>
      %s1 = stablehlo.dynamic_update_slice %r1, %p1, %j, %o, %o : (tensor<3x4x128xf32>, tensor<1x4x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x128xf32>
      %s2 = stablehlo.dynamic_update_slice %r2, %p2, %j, %o, %o : (tensor<3x4x128xf32>, tensor<1x4x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x128xf32>
      %s3 = stablehlo.dynamic_update_slice %r3, %p3, %j, %o, %o : (tensor<3x4x128xf32>, tensor<1x4x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x128xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %s1, %s2, %s3 : tensor<i32>, tensor<3x4x128xf32>, tensor<3x4x128xf32>, tensor<3x4x128xf32>
    }
  func.return %b#1, %b#2, %b#3 : tensor<3x4x128xf32>, tensor<3x4x128xf32>, tensor<3x4x128xf32>
}
