// A sum over the rows of what a row program makes adds up with its tiles; what is read for that alone has no memory. Numbers are whole, so every order
// gives the same, which a product with ones that only the run knows tells: of whole rows, of short ones side by side, of rows that do not fill the last
// tile, of a program without columns, inside a loop, and of a result that others read too. Halves have parts of their own, so two cores give the bits of one.
// run: otrn run %s --check
// run: otrn run %s --check --lnc=2
// run: otrn run %s --check --target=trn1
// run: otrn run %s --target=trn3 --host=portable --threads=1
// run: otrn compile %s --cache=off --target=trn2 --lnc=1 --dump=nest
// expect: product f32 -> f32 in0[0] in1[0] -> out0[0] k(256:1:256) m(1:1:1) n(256:1:1)
// expect: product f32 -> f32 in0[0] in1[0] -> out0[0] k(256:1:128) m(1:1:1) n(128:1:1)
// expect: product f32 -> f32 in0[0] in1[0] -> out0[0] k(256:1:300) m(1:1:1) n(300:1:1)
// expect: product f32 -> f32 in0[0] in1[0] -> out0[0] k(256:1:512) m(1:1:1) n(512:1:1)
// expect: loop
// expect: product f32 -> f32 in0[0] in1[0] -> out0[0] k(256:1:256) m(1:1:1) n(256:1:1)
// expect: end
func.func @main() {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %i0 = stablehlo.iota dim = 0 : tensor<1048576xi32>
  %seven = stablehlo.constant dense<7> : tensor<1048576xi32>
  %i1 = stablehlo.remainder %i0, %seven : tensor<1048576xi32>
  %x = stablehlo.convert %i1 : (tensor<1048576xi32>) -> tensor<1048576xf32>
  %first = stablehlo.slice %x [0:1] : (tensor<1048576xf32>) -> tensor<1xf32>
  %first0 = stablehlo.reshape %first : (tensor<1xf32>) -> tensor<f32>
  %yes = stablehlo.compare EQ, %first0, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %k1 = stablehlo.constant dense<1.0> : tensor<f32>
  %k2 = stablehlo.constant dense<2.0> : tensor<f32>
  %one = stablehlo.select %yes, %k1, %k2 : tensor<i1>, tensor<f32>
  %other = stablehlo.constant dense<3.0> : tensor<1048576xf32>
  %xb = stablehlo.select %yes, %x, %other : tensor<i1>, tensor<1048576xf32>
  %p0a = stablehlo.slice %x [0:1048576] : (tensor<1048576xf32>) -> tensor<1048576xf32>
  %p1a = stablehlo.reshape %p0a : (tensor<1048576xf32>) -> tensor<4096x256xf32>
  %pca = stablehlo.slice %x [5:261] : (tensor<1048576xf32>) -> tensor<256xf32>
  %pwa = stablehlo.broadcast_in_dim %pca, dims = [1] : (tensor<256xf32>) -> tensor<4096x256xf32>
  %pza = stablehlo.subtract %p1a, %pwa : tensor<4096x256xf32>
  %pya = stablehlo.multiply %pza, %p1a : tensor<4096x256xf32>
  %p0b = stablehlo.slice %xb [0:1048576] : (tensor<1048576xf32>) -> tensor<1048576xf32>
  %p1b = stablehlo.reshape %p0b : (tensor<1048576xf32>) -> tensor<4096x256xf32>
  %pcb = stablehlo.slice %xb [5:261] : (tensor<1048576xf32>) -> tensor<256xf32>
  %pwb = stablehlo.broadcast_in_dim %pcb, dims = [1] : (tensor<256xf32>) -> tensor<4096x256xf32>
  %pzb = stablehlo.subtract %p1b, %pwb : tensor<4096x256xf32>
  %pyb = stablehlo.multiply %pzb, %p1b : tensor<4096x256xf32>
  %ps = stablehlo.reduce(%pya init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4096x256xf32>, tensor<f32>) -> tensor<256xf32>
  %po = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<4096xf32>
  %pe = stablehlo.dot_general %po, %pyb, contracting_dims = [0] x [0] : (tensor<4096xf32>, tensor<4096x256xf32>) -> tensor<256xf32>
  check.expect_eq %ps, %pe : tensor<256xf32>
  %q0a = stablehlo.slice %x [0:1048576] : (tensor<1048576xf32>) -> tensor<1048576xf32>
  %q1a = stablehlo.reshape %q0a : (tensor<1048576xf32>) -> tensor<16384x64xf32>
  %qca = stablehlo.slice %x [5:69] : (tensor<1048576xf32>) -> tensor<64xf32>
  %qwa = stablehlo.broadcast_in_dim %qca, dims = [1] : (tensor<64xf32>) -> tensor<16384x64xf32>
  %qza = stablehlo.subtract %q1a, %qwa : tensor<16384x64xf32>
  %qya = stablehlo.multiply %qza, %q1a : tensor<16384x64xf32>
  %q0b = stablehlo.slice %xb [0:1048576] : (tensor<1048576xf32>) -> tensor<1048576xf32>
  %q1b = stablehlo.reshape %q0b : (tensor<1048576xf32>) -> tensor<16384x64xf32>
  %qcb = stablehlo.slice %xb [5:69] : (tensor<1048576xf32>) -> tensor<64xf32>
  %qwb = stablehlo.broadcast_in_dim %qcb, dims = [1] : (tensor<64xf32>) -> tensor<16384x64xf32>
  %qzb = stablehlo.subtract %q1b, %qwb : tensor<16384x64xf32>
  %qyb = stablehlo.multiply %qzb, %q1b : tensor<16384x64xf32>
  %qs = stablehlo.reduce(%qya init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16384x64xf32>, tensor<f32>) -> tensor<64xf32>
  %qo = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<16384xf32>
  %qe = stablehlo.dot_general %qo, %qyb, contracting_dims = [0] x [0] : (tensor<16384xf32>, tensor<16384x64xf32>) -> tensor<64xf32>
  check.expect_eq %qs, %qe : tensor<64xf32>
  %r0a = stablehlo.slice %x [0:750000] : (tensor<1048576xf32>) -> tensor<750000xf32>
  %r1a = stablehlo.reshape %r0a : (tensor<750000xf32>) -> tensor<2500x300xf32>
  %rca = stablehlo.slice %x [5:305] : (tensor<1048576xf32>) -> tensor<300xf32>
  %rwa = stablehlo.broadcast_in_dim %rca, dims = [1] : (tensor<300xf32>) -> tensor<2500x300xf32>
  %rza = stablehlo.subtract %r1a, %rwa : tensor<2500x300xf32>
  %rya = stablehlo.multiply %rza, %r1a : tensor<2500x300xf32>
  %r0b = stablehlo.slice %xb [0:750000] : (tensor<1048576xf32>) -> tensor<750000xf32>
  %r1b = stablehlo.reshape %r0b : (tensor<750000xf32>) -> tensor<2500x300xf32>
  %rcb = stablehlo.slice %xb [5:305] : (tensor<1048576xf32>) -> tensor<300xf32>
  %rwb = stablehlo.broadcast_in_dim %rcb, dims = [1] : (tensor<300xf32>) -> tensor<2500x300xf32>
  %rzb = stablehlo.subtract %r1b, %rwb : tensor<2500x300xf32>
  %ryb = stablehlo.multiply %rzb, %r1b : tensor<2500x300xf32>
  %rs = stablehlo.reduce(%rya init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2500x300xf32>, tensor<f32>) -> tensor<300xf32>
  %ro = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<2500xf32>
  %re = stablehlo.dot_general %ro, %ryb, contracting_dims = [0] x [0] : (tensor<2500xf32>, tensor<2500x300xf32>) -> tensor<300xf32>
  check.expect_eq %rs, %re : tensor<300xf32>
  %f0a = stablehlo.slice %x [0:1048576] : (tensor<1048576xf32>) -> tensor<1048576xf32>
  %f1a = stablehlo.reshape %f0a : (tensor<1048576xf32>) -> tensor<2048x512xf32>
  %fya = stablehlo.multiply %f1a, %f1a : tensor<2048x512xf32>
  %f0b = stablehlo.slice %xb [0:1048576] : (tensor<1048576xf32>) -> tensor<1048576xf32>
  %f1b = stablehlo.reshape %f0b : (tensor<1048576xf32>) -> tensor<2048x512xf32>
  %fyb = stablehlo.multiply %f1b, %f1b : tensor<2048x512xf32>
  %fs = stablehlo.reduce(%fya init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2048x512xf32>, tensor<f32>) -> tensor<512xf32>
  %fo = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<2048xf32>
  %fe = stablehlo.dot_general %fo, %fyb, contracting_dims = [0] x [0] : (tensor<2048xf32>, tensor<2048x512xf32>) -> tensor<512xf32>
  check.expect_eq %fs, %fe : tensor<512xf32>

  // in a loop, of a result that the loop carries on
  %n = stablehlo.constant dense<3> : tensor<i32>
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %v0 = stablehlo.constant dense<0.0> : tensor<256xf32>
  %l:3 = stablehlo.while(%i = %c0, %y = %p1a, %v = %v0) : tensor<i32>, tensor<4096x256xf32>, tensor<256xf32>
   cond {
    %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %i, %c1 : tensor<i32>
    %w = stablehlo.broadcast_in_dim %pca, dims = [1] : (tensor<256xf32>) -> tensor<4096x256xf32>
    %z = stablehlo.add %y, %w : tensor<4096x256xf32>
    %s = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4096x256xf32>, tensor<f32>) -> tensor<256xf32>
    %t = stablehlo.add %v, %s : tensor<256xf32>
    stablehlo.return %next, %z, %t : tensor<i32>, tensor<4096x256xf32>, tensor<256xf32>
  }
  // three sums: of x + c, x + 2 c, x + 3 c
  %po1 = stablehlo.dot_general %po, %p1b, contracting_dims = [0] x [0] : (tensor<4096xf32>, tensor<4096x256xf32>) -> tensor<256xf32>
  %k3 = stablehlo.constant dense<3.0> : tensor<256xf32>
  %k6 = stablehlo.constant dense<24576.0> : tensor<256xf32>
  %m0 = stablehlo.multiply %po1, %k3 : tensor<256xf32>
  %m1 = stablehlo.multiply %pcb, %k6 : tensor<256xf32>
  %m2 = stablehlo.add %m0, %m1 : tensor<256xf32>
  check.expect_eq %l#2, %m2 : tensor<256xf32>
  func.return
}
