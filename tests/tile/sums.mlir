// A sum over the rows of what a product contracts too is part of that product, which has it in SBUF: the gradient of a bias beside that of
// its weights, whichever operand it is, with programs behind both or neither, over one core or two. What a choice gives, which only the
// run knows, has a sum and a product of its own, with the same bits. A sum that the product's other operand needs stays where it is.
// run: otrn run %s --check
// run: otrn run %s --check --lnc=2
// run: otrn run %s --check --target=trn1
// run: otrn run %s --target=trn3 --host=portable --threads=1
// run: otrn compile %s --cache=off --target=trn2 --lnc=1 --dump=nest
// expect: product bf16 -> bf16 in0[0] in1[0] -> out0[0] k(600:384:700) m(384:1:700) n(700:1:1)
// expect: product bf16 -> bf16 in4[0] in1[0] -> out2[0] k(600:1:700) m(1:1:1) n(700:1:1)
// expect: # 13 dot dot_general: %0 %8 %0 %6 -> %6 %0
// expect: product bf16 -> bf16 in0[0] in1[0] -> out0[0] k(600:1:700) m(1:1:1) n(700:1:1)
// expect: product f32 -> f32 in0[0] in1[0] -> out0[0] k(600:1100:256) m(1100:1:256) n(256:1:1)
// expect: product f32 -> f32 in2[0] in0[0] -> out1[0] k(600:1:1100) m(1:1:1) n(1100:1:1)
// expect: # 25 dot dot_general: %0 %22 -> %23
// expect: product f32 -> f32 in0[0] in1[0] -> out0[0] k(96:1:300) m(1:1:1) n(300:1:1)
// expect: # 27 dot dot_general: %24 %22 -> %25
// expect: loop
// expect: product f32 -> f32 in0[0] in1[0] -> out0[0] k(256:160:192) m(160:1:192) n(192:1:1)
// expect: product f32 -> f32 in2[0] in1[0] -> out1[0] k(256:1:192) m(1:1:1) n(192:1:1)
// expect: end
func.func @main() {
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %zf = stablehlo.constant dense<0.0> : tensor<f32>
  %i0 = stablehlo.iota dim = 0 : tensor<660000xf32>
  %i1 = stablehlo.sine %i0 : tensor<660000xf32>
  %c = stablehlo.convert %i1 : (tensor<660000xf32>) -> tensor<660000xbf16>
  %x0 = stablehlo.slice %c [0:230400] : (tensor<660000xbf16>) -> tensor<230400xbf16>
  %x = stablehlo.reshape %x0 : (tensor<230400xbf16>) -> tensor<600x384xbf16>
  %g0 = stablehlo.slice %c [1000:421000] : (tensor<660000xbf16>) -> tensor<420000xbf16>
  %g1 = stablehlo.reshape %g0 : (tensor<420000xbf16>) -> tensor<600x700xbf16>
  %g = stablehlo.tanh %g1 : tensor<600x700xbf16>
  %t0 = stablehlo.slice %c [7:268807] : (tensor<660000xbf16>) -> tensor<268800xbf16>
  %t = stablehlo.reshape %t0 : (tensor<268800xbf16>) -> tensor<384x700xbf16>
  %u = stablehlo.slice %c [9:709] : (tensor<660000xbf16>) -> tensor<700xbf16>

  %first = stablehlo.slice %i1 [0:1] : (tensor<660000xf32>) -> tensor<1xf32>
  %first0 = stablehlo.reshape %first : (tensor<1xf32>) -> tensor<f32>
  %yes = stablehlo.compare EQ, %first0, %zf : (tensor<f32>, tensor<f32>) -> tensor<i1>

  // both are added to what there was
  %dw = stablehlo.dot_general %x, %g, contracting_dims = [0] x [0] : (tensor<600x384xbf16>, tensor<600x700xbf16>) -> tensor<384x700xbf16>
  %wsum = stablehlo.add %dw, %t : tensor<384x700xbf16>
  %db = stablehlo.reduce(%g init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<600x700xbf16>, tensor<bf16>) -> tensor<700xbf16>
  %bsum = stablehlo.add %db, %u : tensor<700xbf16>
  %no1 = stablehlo.constant dense<1.0> : tensor<600x700xbf16>
  %gb = stablehlo.select %yes, %g, %no1 : tensor<i1>, tensor<600x700xbf16>
  %dwa = stablehlo.dot_general %x, %gb, contracting_dims = [0] x [0] : (tensor<600x384xbf16>, tensor<600x700xbf16>) -> tensor<384x700xbf16>
  %wapart = stablehlo.add %dwa, %t : tensor<384x700xbf16>
  %no2 = stablehlo.constant dense<2.0> : tensor<600x700xbf16>
  %gc = stablehlo.select %yes, %g, %no2 : tensor<i1>, tensor<600x700xbf16>
  %dba = stablehlo.reduce(%gc init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<600x700xbf16>, tensor<bf16>) -> tensor<700xbf16>
  %bapart = stablehlo.add %dba, %u : tensor<700xbf16>
  check.expect_eq %wsum, %wapart : tensor<384x700xbf16>
  check.expect_eq %bsum, %bapart : tensor<700xbf16>

  // of the first operand, stored as they are
  %h0 = stablehlo.reshape %i1 : (tensor<660000xf32>) -> tensor<600x1100xf32>
  %h = stablehlo.tanh %h0 : tensor<600x1100xf32>
  %y0 = stablehlo.slice %i1 [3:153603] : (tensor<660000xf32>) -> tensor<153600xf32>
  %y = stablehlo.reshape %y0 : (tensor<153600xf32>) -> tensor<600x256xf32>
  %ew = stablehlo.dot_general %h, %y, contracting_dims = [0] x [0] : (tensor<600x1100xf32>, tensor<600x256xf32>) -> tensor<1100x256xf32>
  %eb = stablehlo.reduce(%h init: %zf) applies stablehlo.add across dimensions = [0] : (tensor<600x1100xf32>, tensor<f32>) -> tensor<1100xf32>
  %no3 = stablehlo.constant dense<3.0> : tensor<600x1100xf32>
  %hb = stablehlo.select %yes, %h, %no3 : tensor<i1>, tensor<600x1100xf32>
  %ewa = stablehlo.dot_general %hb, %y, contracting_dims = [0] x [0] : (tensor<600x1100xf32>, tensor<600x256xf32>) -> tensor<1100x256xf32>
  %no4 = stablehlo.constant dense<4.0> : tensor<600x1100xf32>
  %hc = stablehlo.select %yes, %h, %no4 : tensor<i1>, tensor<600x1100xf32>
  %eba = stablehlo.reduce(%hc init: %zf) applies stablehlo.add across dimensions = [0] : (tensor<600x1100xf32>, tensor<f32>) -> tensor<1100xf32>
  check.expect_eq %ew, %ewa : tensor<1100x256xf32>
  check.expect_eq %eb, %eba : tensor<1100xf32>

  // the sum comes first
  %k0 = stablehlo.slice %i1 [0:28800] : (tensor<660000xf32>) -> tensor<28800xf32>
  %k = stablehlo.reshape %k0 : (tensor<28800xf32>) -> tensor<96x300xf32>
  %m = stablehlo.cosine %k : tensor<96x300xf32>
  %ms = stablehlo.reduce(%m init: %zf) applies stablehlo.add across dimensions = [0] : (tensor<96x300xf32>, tensor<f32>) -> tensor<300xf32>
  %mb = stablehlo.broadcast_in_dim %ms, dims = [1] : (tensor<300xf32>) -> tensor<96x300xf32>
  %n = stablehlo.subtract %k, %mb : tensor<96x300xf32>
  %fw = stablehlo.dot_general %n, %m, contracting_dims = [0] x [0] : (tensor<96x300xf32>, tensor<96x300xf32>) -> tensor<300x300xf32>
  %no5 = stablehlo.constant dense<5.0> : tensor<96x300xf32>
  %md = stablehlo.select %yes, %m, %no5 : tensor<i1>, tensor<96x300xf32>
  %msa = stablehlo.reduce(%md init: %zf) applies stablehlo.add across dimensions = [0] : (tensor<96x300xf32>, tensor<f32>) -> tensor<300xf32>
  %mba = stablehlo.broadcast_in_dim %msa, dims = [1] : (tensor<300xf32>) -> tensor<96x300xf32>
  %na = stablehlo.subtract %k, %mba : tensor<96x300xf32>
  %no6 = stablehlo.constant dense<6.0> : tensor<96x300xf32>
  %me = stablehlo.select %yes, %m, %no6 : tensor<i1>, tensor<96x300xf32>
  %fwa = stablehlo.dot_general %na, %me, contracting_dims = [0] x [0] : (tensor<96x300xf32>, tensor<96x300xf32>) -> tensor<300x300xf32>
  check.expect_eq %fw, %fwa : tensor<300x300xf32>

  // in a loop, each put where it is gathered
  %o = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %p0 = stablehlo.slice %i1 [5:40965] : (tensor<660000xf32>) -> tensor<40960xf32>
  %p = stablehlo.reshape %p0 : (tensor<40960xf32>) -> tensor<256x160xf32>
  %q0 = stablehlo.slice %i1 [11:147467] : (tensor<660000xf32>) -> tensor<147456xf32>
  %q = stablehlo.reshape %q0 : (tensor<147456xf32>) -> tensor<3x256x192xf32>
  %sw = stablehlo.constant dense<0.0> : tensor<3x160x192xf32>
  %sb = stablehlo.constant dense<0.0> : tensor<3x192xf32>
  %r:3 = stablehlo.while(%i = %o, %ws = %sw, %bs = %sb) : tensor<i32>, tensor<3x160x192xf32>, tensor<3x192xf32>
    cond {
      %go = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %a0 = stablehlo.dynamic_slice %q, %i, %o, %o, sizes = [1, 256, 192] : (tensor<3x256x192xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x256x192xf32>
      %a1 = stablehlo.reshape %a0 : (tensor<1x256x192xf32>) -> tensor<256x192xf32>
      %a = stablehlo.tanh %a1 : tensor<256x192xf32>
      %lw = stablehlo.dot_general %p, %a, contracting_dims = [0] x [0] : (tensor<256x160xf32>, tensor<256x192xf32>) -> tensor<160x192xf32>
      %lb = stablehlo.reduce(%a init: %zf) applies stablehlo.add across dimensions = [0] : (tensor<256x192xf32>, tensor<f32>) -> tensor<192xf32>
      %lw1 = stablehlo.reshape %lw : (tensor<160x192xf32>) -> tensor<1x160x192xf32>
      %lb1 = stablehlo.reshape %lb : (tensor<192xf32>) -> tensor<1x192xf32>
      %ws1 = stablehlo.dynamic_update_slice %ws, %lw1, %i, %o, %o : (tensor<3x160x192xf32>, tensor<1x160x192xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x160x192xf32>
      %bs1 = stablehlo.dynamic_update_slice %bs, %lb1, %i, %o : (tensor<3x192xf32>, tensor<1x192xf32>, tensor<i32>, tensor<i32>) -> tensor<3x192xf32>
      %i1n = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %i1n, %ws1, %bs1 : tensor<i32>, tensor<3x160x192xf32>, tensor<3x192xf32>
    }
  %qt = stablehlo.tanh %q : tensor<3x256x192xf32>
  %qe = stablehlo.reduce(%qt init: %zf) applies stablehlo.add across dimensions = [1] : (tensor<3x256x192xf32>, tensor<f32>) -> tensor<3x192xf32>
  check.expect_eq %r#2, %qe : tensor<3x192xf32>
  return
}
