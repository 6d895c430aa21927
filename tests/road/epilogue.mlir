// Row programs behind products take their tiles out of PSUM: bias and activation, a residual with a number per row and the
// product kept as well, batches with a mask and operands that repeat, rounding to bf16 first, a long contraction over all
// banks, a small result. The product's own result reaches HBM only where somebody else reads it, and every bit is that of
// product and program apart.
// run: otrn run %s --cache=off --disable-pass=epilogue --output=%t/apart
// run: otrn run %s --cache=off --output=%t/a && for i in 0 1 2 3 4 5 6 7; do cmp %t/apart/result_$i.npy %t/a/result_$i.npy || exit 1; done
// run: otrn run %s --cache=off --plan=off --check --output=%t/b && for i in 0 1 2 3 4 5 6 7; do cmp %t/apart/result_$i.npy %t/b/result_$i.npy || exit 1; done
// run: otrn run %s --cache=off --target=trn1 --host=portable --threads=1 --output=%t/c && for i in 0 1 2 3 4 5 6 7; do cmp %t/apart/result_$i.npy %t/c/result_$i.npy || exit 1; done
// run: otrn run %s --cache=off --lnc=2 --output=%t/d && for i in 0 1 2 3 4 5 6 7; do cmp %t/apart/result_$i.npy %t/d/result_$i.npy || exit 1; done
// run: echo marked $(otrn compile %s --cache=off --dump=epilogue -o %t/e.otrn | grep -c 'product = ')
// expect: marked 6
// run: otrn compile %s --cache=off --dump=epilogue -o %t/e.otrn > %t/e.mlir && otrn run %t/e.mlir --cache=off --output=%t/f && for i in 0 1 2 3 4 5 6 7; do cmp %t/apart/result_$i.npy %t/f/result_$i.npy || exit 1; done
// run: otrn dis %t/e.otrn | grep 'activation.*src=psum.*fn=tanh.*n0=4 n1=4' && otrn compile %s --cache=off --explain -o %t/e.otrn
// expect: fn=tanh
// expect: epilogue.mlir:94 tanh
// expect: activation
// expect-not: otrn.fused
func.func public @main() -> (tensor<300x1100xf32>, tensor<300x600xf32>, tensor<300x600xf32>, tensor<3x200x520xf32>, tensor<640x1100xbf16>, tensor<130x1030xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %i0 = stablehlo.iota dim = 0 : tensor<300x700xf32>
  %i1 = stablehlo.iota dim = 1 : tensor<300x700xf32>
  %is = stablehlo.constant dense<0.37> : tensor<300x700xf32>
  %i2 = stablehlo.multiply %i1, %is : tensor<300x700xf32>
  %i3 = stablehlo.add %i0, %i2 : tensor<300x700xf32>
  %a = stablehlo.sine %i3 : tensor<300x700xf32>
  %j0 = stablehlo.iota dim = 0 : tensor<700x1100xf32>
  %j1 = stablehlo.iota dim = 1 : tensor<700x1100xf32>
  %js = stablehlo.constant dense<0.61> : tensor<700x1100xf32>
  %j2 = stablehlo.multiply %j1, %js : tensor<700x1100xf32>
  %j3 = stablehlo.add %j0, %j2 : tensor<700x1100xf32>
  %j4 = stablehlo.cosine %j3 : tensor<700x1100xf32>
  %jt = stablehlo.constant dense<0.05> : tensor<700x1100xf32>
  %b = stablehlo.multiply %j4, %jt : tensor<700x1100xf32>

  // bias, then x * sigmoid(1.702 x)
  %v0 = stablehlo.slice %b [0:1, 0:1100] : (tensor<700x1100xf32>) -> tensor<1x1100xf32>
  %v = stablehlo.reshape %v0 : (tensor<1x1100xf32>) -> tensor<1100xf32>
  %p0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<300x700xf32>, tensor<700x1100xf32>) -> tensor<300x1100xf32>
  %vb = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<1100xf32>) -> tensor<300x1100xf32>
  %p1 = stablehlo.add %p0, %vb : tensor<300x1100xf32>
  %c0 = stablehlo.constant dense<1.702> : tensor<300x1100xf32>
  %p2 = stablehlo.multiply %p1, %c0 : tensor<300x1100xf32>
  %p3 = stablehlo.logistic %p2 : tensor<300x1100xf32>
  %r0 = stablehlo.multiply %p1, %p3 : tensor<300x1100xf32>

  // a number per row, a residual, and the product itself
  %b6 = stablehlo.slice %b [0:700, 0:600] : (tensor<700x1100xf32>) -> tensor<700x600xf32>
  %q0 = stablehlo.dot_general %a, %b6, contracting_dims = [1] x [0] : (tensor<300x700xf32>, tensor<700x600xf32>) -> tensor<300x600xf32>
  %w0 = stablehlo.slice %a [0:300, 3:4] : (tensor<300x700xf32>) -> tensor<300x1xf32>
  %w = stablehlo.reshape %w0 : (tensor<300x1xf32>) -> tensor<300xf32>
  %wb = stablehlo.broadcast_in_dim %w, dims = [0] : (tensor<300xf32>) -> tensor<300x600xf32>
  %q1 = stablehlo.multiply %q0, %wb : tensor<300x600xf32>
  %res = stablehlo.slice %a [0:300, 50:650] : (tensor<300x700xf32>) -> tensor<300x600xf32>
  %q2 = stablehlo.add %q1, %res : tensor<300x600xf32>
  %r1 = stablehlo.tanh %q2 : tensor<300x600xf32>

  // batches, the right side by its rows, a mask, an operand for all batches
  %bt0 = stablehlo.slice %b [0:600, 0:200] : (tensor<700x1100xf32>) -> tensor<600x200xf32>
  %bt = stablehlo.reshape %bt0 : (tensor<600x200xf32>) -> tensor<3x200x200xf32>
  %bu0 = stablehlo.slice %b [0:624, 0:500] : (tensor<700x1100xf32>) -> tensor<624x500xf32>
  %bu = stablehlo.reshape %bu0 : (tensor<624x500xf32>) -> tensor<3x520x200xf32>
  %s0 = stablehlo.dot_general %bt, %bu, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<3x200x200xf32>, tensor<3x520x200xf32>) -> tensor<3x200x520xf32>
  %each0 = stablehlo.slice %a [0:200, 0:520] : (tensor<300x700xf32>) -> tensor<200x520xf32>
  %each = stablehlo.broadcast_in_dim %each0, dims = [1, 2] : (tensor<200x520xf32>) -> tensor<3x200x520xf32>
  %s1 = stablehlo.add %s0, %each : tensor<3x200x520xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<3x200x520xf32>
  %mask = stablehlo.compare GT, %each, %zero : (tensor<3x200x520xf32>, tensor<3x200x520xf32>) -> tensor<3x200x520xi1>
  %r3 = stablehlo.select %mask, %s1, %zero : tensor<3x200x520xi1>, tensor<3x200x520xf32>

  // bf16: rounded before the program, which computes in bf16 and f32
  %x0 = stablehlo.slice %b [0:640, 0:700] : (tensor<700x1100xf32>) -> tensor<640x700xf32>
  %x1 = stablehlo.convert %x0 : (tensor<640x700xf32>) -> tensor<640x700xbf16>
  %y1 = stablehlo.convert %b : (tensor<700x1100xf32>) -> tensor<700x1100xbf16>
  %t0 = stablehlo.dot_general %x1, %y1, contracting_dims = [1] x [0] : (tensor<640x700xbf16>, tensor<700x1100xbf16>) -> tensor<640x1100xbf16>
  %vn = stablehlo.convert %v : (tensor<1100xf32>) -> tensor<1100xbf16>
  %vnb = stablehlo.broadcast_in_dim %vn, dims = [1] : (tensor<1100xbf16>) -> tensor<640x1100xbf16>
  %t1 = stablehlo.add %t0, %vnb : tensor<640x1100xbf16>
  %t2 = stablehlo.multiply %t1, %t1 : tensor<640x1100xbf16>
  %t3 = stablehlo.multiply %t2, %t0 : tensor<640x1100xbf16>
  %r4 = stablehlo.tanh %t3 : tensor<640x1100xbf16>

  // a long contraction
  %z0 = stablehlo.slice %b [0:650, 0:1030] : (tensor<700x1100xf32>) -> tensor<650x1030xf32>
  %z1 = stablehlo.reshape %z0 : (tensor<650x1030xf32>) -> tensor<130x5150xf32>
  %k0 = stablehlo.iota dim = 0 : tensor<5150x1030xf32>
  %k1 = stablehlo.iota dim = 1 : tensor<5150x1030xf32>
  %k2 = stablehlo.add %k0, %k1 : tensor<5150x1030xf32>
  %k3 = stablehlo.sine %k2 : tensor<5150x1030xf32>
  %u0 = stablehlo.dot_general %z1, %k3, contracting_dims = [1] x [0] : (tensor<130x5150xf32>, tensor<5150x1030xf32>) -> tensor<130x1030xf32>
  %r5 = stablehlo.exponential %u0 : tensor<130x1030xf32>

  // 16 elements: no kernel
  %e0 = stablehlo.slice %a [0:4, 0:4] : (tensor<300x700xf32>) -> tensor<4x4xf32>
  %e1 = stablehlo.dot_general %e0, %e0, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r6 = stablehlo.tanh %e1 : tensor<4x4xf32>
  return %r0, %q0, %r1, %r3, %r4, %r5, %r6, %e0 : tensor<300x1100xf32>, tensor<300x600xf32>, tensor<300x600xf32>, tensor<3x200x520xf32>, tensor<640x1100xbf16>, tensor<130x1030xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
