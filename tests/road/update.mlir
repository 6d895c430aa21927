// Updates of Adam read numbers that only the step's count decides, written behind all gradients. These are made first (pass/ahead.c), so that each
// update takes the tiles of its gradient's product; scale and bias go along with square root and reciprocal where the chip takes them. Every bit is that of
// product and program apart, of other chips, which fold less, and of tiles too narrow for the scalar engine's reciprocal.
// run: otrn eval %S/data/update_gen.mlir --output=%t/in >%t/log
// run: IN=$(echo %t/in/result_*.npy | tr ' ' ','); otrn run %s --cache=off --disable-pass=epilogue --input=$IN --output=%t/apart >%t/log && otrn run %s --cache=off --input=$IN --output=%t/a >%t/log && otrn run %s --cache=off --plan=off --check --input=$IN --output=%t/b >%t/log && otrn run %s --cache=off --target=trn1 --threads=1 --input=$IN --output=%t/c >%t/log && otrn run %s --cache=off --lnc=1 --disable-pass=ahead --input=$IN --output=%t/d >%t/log
// run: for i in 0 1 2 3 4 5 6 7; do for d in a b c d; do cmp %t/apart/result_$i.npy %t/$d/result_$i.npy || exit 1; done; done; echo same bits
// expect: same bits
// run: otrn compile %s --target=trn2 --lnc=1 --cache=off --dump=nest -o %t/a.otrn >%t/nest; echo $(grep -c ' dot dot_general: %[0-9]* %[0-9]* %[0-9]* %[0-9]* %[0-9]* ' %t/nest) updates behind their product
// expect: 2 updates behind their product
// run: otrn dis %t/a.otrn | grep -m1 'fn=sqrt a=sbuf' && otrn dis %t/a.otrn | grep -m1 'fn=reciprocal b=9.99999994e-09'
// expect: fn=sqrt
// expect: fn=reciprocal
// run: otrn dis %t/a.otrn | awk '/scalar: activation.*fn=(sqrt|reciprocal)/ { n++; f = /fn=sqrt/; s += n > 1 && f != last; last = f } END { print (2 * s < n ? "square roots go together: tables stay" : "tables change " s " times for " n) }'
// expect: tables stay
func.func public @main(%x: tensor<256x256xf32>, %w: tensor<256x512xf32>, %m: tensor<256x512xf32>, %v: tensor<256x512xf32>, %w2: tensor<256x200xf32>, %m2: tensor<256x200xf32>, %v2: tensor<256x200xf32>, %count: tensor<i32>) -> (tensor<256x512xf32>, tensor<256x512xf32>, tensor<256x512xf32>, tensor<256x200xf32>, tensor<256x200xf32>, tensor<256x200xf32>, tensor<256x256xf32>, tensor<i32>) {
  %g = stablehlo.dot_general %x, %w, contracting_dims = [0] x [0] : (tensor<256x256xf32>, tensor<256x512xf32>) -> tensor<256x512xf32>
  %h = stablehlo.dot_general %x, %w2, contracting_dims = [0] x [0] : (tensor<256x256xf32>, tensor<256x200xf32>) -> tensor<256x200xf32>
  %y0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z0 = stablehlo.tanh %y0 : tensor<256x256xf32>
  %y1 = stablehlo.dot_general %z0, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z1 = stablehlo.tanh %y1 : tensor<256x256xf32>
  %y2 = stablehlo.dot_general %z1, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z2 = stablehlo.tanh %y2 : tensor<256x256xf32>
  %y3 = stablehlo.dot_general %z2, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z3 = stablehlo.tanh %y3 : tensor<256x256xf32>
  %y4 = stablehlo.dot_general %z3, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z4 = stablehlo.tanh %y4 : tensor<256x256xf32>
  %y5 = stablehlo.dot_general %z4, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z5 = stablehlo.tanh %y5 : tensor<256x256xf32>
  %y6 = stablehlo.dot_general %z5, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z6 = stablehlo.tanh %y6 : tensor<256x256xf32>
  %y7 = stablehlo.dot_general %z6, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z7 = stablehlo.tanh %y7 : tensor<256x256xf32>
  %y8 = stablehlo.dot_general %z7, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z8 = stablehlo.tanh %y8 : tensor<256x256xf32>
  %y9 = stablehlo.dot_general %z8, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z9 = stablehlo.tanh %y9 : tensor<256x256xf32>
  %y10 = stablehlo.dot_general %z9, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z10 = stablehlo.tanh %y10 : tensor<256x256xf32>
  %y11 = stablehlo.dot_general %z10, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z11 = stablehlo.tanh %y11 : tensor<256x256xf32>
  %y12 = stablehlo.dot_general %z11, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z12 = stablehlo.tanh %y12 : tensor<256x256xf32>
  %y13 = stablehlo.dot_general %z12, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z13 = stablehlo.tanh %y13 : tensor<256x256xf32>
  %y14 = stablehlo.dot_general %z13, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z14 = stablehlo.tanh %y14 : tensor<256x256xf32>
  %y15 = stablehlo.dot_general %z14, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z15 = stablehlo.tanh %y15 : tensor<256x256xf32>
  %y16 = stablehlo.dot_general %z15, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z16 = stablehlo.tanh %y16 : tensor<256x256xf32>
  %y17 = stablehlo.dot_general %z16, %x, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %z17 = stablehlo.tanh %y17 : tensor<256x256xf32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %next = stablehlo.add %count, %one : tensor<i32>
  %t = stablehlo.convert %next : (tensor<i32>) -> tensor<f32>
  %f1 = stablehlo.constant dense<1.0> : tensor<f32>
  %b1 = stablehlo.constant dense<0.9> : tensor<f32>
  %b2 = stablehlo.constant dense<0.999> : tensor<f32>
  %p1 = stablehlo.power %b1, %t : tensor<f32>
  %c1 = stablehlo.subtract %f1, %p1 : tensor<f32>
  %p2 = stablehlo.power %b2, %t : tensor<f32>
  %c2 = stablehlo.subtract %f1, %p2 : tensor<f32>
  %k9 = stablehlo.constant dense<0.9> : tensor<256x512xf32>
  %k1 = stablehlo.constant dense<0.1> : tensor<256x512xf32>
  %k99 = stablehlo.constant dense<0.999> : tensor<256x512xf32>
  %k01 = stablehlo.constant dense<0.001> : tensor<256x512xf32>
  %eps = stablehlo.constant dense<1e-08> : tensor<256x512xf32>
  %lr = stablehlo.constant dense<-2e-05> : tensor<256x512xf32>
  %m9 = stablehlo.multiply %m, %k9 : tensor<256x512xf32>
  %g1 = stablehlo.multiply %g, %k1 : tensor<256x512xf32>
  %mn = stablehlo.add %m9, %g1 : tensor<256x512xf32>
  %v9 = stablehlo.multiply %v, %k99 : tensor<256x512xf32>
  %gg = stablehlo.multiply %g, %g : tensor<256x512xf32>
  %g2 = stablehlo.multiply %gg, %k01 : tensor<256x512xf32>
  %vn = stablehlo.add %v9, %g2 : tensor<256x512xf32>
  %cb1 = stablehlo.broadcast_in_dim %c1, dims = [] : (tensor<f32>) -> tensor<256x512xf32>
  %cb2 = stablehlo.broadcast_in_dim %c2, dims = [] : (tensor<f32>) -> tensor<256x512xf32>
  %mh = stablehlo.divide %mn, %cb1 : tensor<256x512xf32>
  %vh = stablehlo.divide %vn, %cb2 : tensor<256x512xf32>
  %sq = stablehlo.sqrt %vh : tensor<256x512xf32>
  %se = stablehlo.add %sq, %eps : tensor<256x512xf32>
  %q = stablehlo.divide %mh, %se : tensor<256x512xf32>
  %d = stablehlo.multiply %q, %lr : tensor<256x512xf32>
  %wn = stablehlo.add %w, %d : tensor<256x512xf32>
  %k9_2 = stablehlo.constant dense<0.9> : tensor<256x200xf32>
  %k1_2 = stablehlo.constant dense<0.1> : tensor<256x200xf32>
  %k99_2 = stablehlo.constant dense<0.999> : tensor<256x200xf32>
  %k01_2 = stablehlo.constant dense<0.001> : tensor<256x200xf32>
  %eps_2 = stablehlo.constant dense<1e-08> : tensor<256x200xf32>
  %lr_2 = stablehlo.constant dense<-2e-05> : tensor<256x200xf32>
  %m9_2 = stablehlo.multiply %m2, %k9_2 : tensor<256x200xf32>
  %g1_2 = stablehlo.multiply %h, %k1_2 : tensor<256x200xf32>
  %mn_2 = stablehlo.add %m9_2, %g1_2 : tensor<256x200xf32>
  %v9_2 = stablehlo.multiply %v2, %k99_2 : tensor<256x200xf32>
  %gg_2 = stablehlo.multiply %h, %h : tensor<256x200xf32>
  %g2_2 = stablehlo.multiply %gg_2, %k01_2 : tensor<256x200xf32>
  %vn_2 = stablehlo.add %v9_2, %g2_2 : tensor<256x200xf32>
  %cb1_2 = stablehlo.broadcast_in_dim %c1, dims = [] : (tensor<f32>) -> tensor<256x200xf32>
  %cb2_2 = stablehlo.broadcast_in_dim %c2, dims = [] : (tensor<f32>) -> tensor<256x200xf32>
  %mh_2 = stablehlo.divide %mn_2, %cb1_2 : tensor<256x200xf32>
  %vh_2 = stablehlo.divide %vn_2, %cb2_2 : tensor<256x200xf32>
  %sq_2 = stablehlo.sqrt %vh_2 : tensor<256x200xf32>
  %se_2 = stablehlo.add %sq_2, %eps_2 : tensor<256x200xf32>
  %q_2 = stablehlo.divide %mh_2, %se_2 : tensor<256x200xf32>
  %d_2 = stablehlo.multiply %q_2, %lr_2 : tensor<256x200xf32>
  %wn_2 = stablehlo.add %w2, %d_2 : tensor<256x200xf32>
  return %wn, %mn, %vn, %wn_2, %mn_2, %vn_2, %z17, %next : tensor<256x512xf32>, tensor<256x512xf32>, tensor<256x512xf32>, tensor<256x200xf32>, tensor<256x200xf32>, tensor<256x200xf32>, tensor<256x256xf32>, tensor<i32>
}
