// Masks that compare iotas, of any direction, sign and offset, are fp32 vectors against each other (pass/counters.c): the same flags as
// the integers give, which a count of bits behind a barrier keeps from being seen through, and as floats that say the same; no kernel of the size of the
// mask is left. Long rows, more than two dimensions, an iota that somebody else reads too; unsigned differences wrap and are computed.
// run: otrn eval %s
// run: otrn run %s --cache=off --disable-pass=fold --check
// run: otrn run %s --lnc=2 --target=trn3
// run: otrn run %s --disable-pass=counters
// run: otrn compile %s --cache=off --disable-pass=fold --dump=rows -o %t/a.otrn | grep -c 'otrn.rows'
// expect: 27
func.func public @main() {
  %none = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.popcnt %none : tensor<i32>
  %zero = "stablehlo.optimization_barrier"(%z) : (tensor<i32>) -> tensor<i32>
  %hide = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<i32>) -> tensor<200x130xi32>
  %i = stablehlo.iota dim = 0 : tensor<200x130xi32>
  %j = stablehlo.iota dim = 1 : tensor<200x130xi32>
  %line = stablehlo.iota dim = 0 : tensor<200xi32>
  %bi = stablehlo.broadcast_in_dim %line, dims = [0] : (tensor<200xi32>) -> tensor<200x130xi32>
  %k = stablehlo.constant dense<-37> : tensor<200x130xi32>
  %up = stablehlo.add %bi, %k : tensor<200x130xi32>
  %down = stablehlo.subtract %k, %i : tensor<200x130xi32>
  %back = stablehlo.subtract %k, %j : tensor<200x130xi32>
  %a0 = stablehlo.compare EQ, %i, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h0 = stablehlo.add %i, %hide : tensor<200x130xi32>
  %b0 = stablehlo.compare EQ, %h0, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a0, %b0 : tensor<200x130xi1>
  %a1 = stablehlo.compare NE, %i, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h1 = stablehlo.add %i, %hide : tensor<200x130xi32>
  %b1 = stablehlo.compare NE, %h1, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a1, %b1 : tensor<200x130xi1>
  %a2 = stablehlo.compare LT, %i, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h2 = stablehlo.add %i, %hide : tensor<200x130xi32>
  %b2 = stablehlo.compare LT, %h2, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a2, %b2 : tensor<200x130xi1>
  %a3 = stablehlo.compare LE, %i, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h3 = stablehlo.add %i, %hide : tensor<200x130xi32>
  %b3 = stablehlo.compare LE, %h3, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a3, %b3 : tensor<200x130xi1>
  %a4 = stablehlo.compare GT, %i, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h4 = stablehlo.add %i, %hide : tensor<200x130xi32>
  %b4 = stablehlo.compare GT, %h4, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a4, %b4 : tensor<200x130xi1>
  %a5 = stablehlo.compare GE, %i, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h5 = stablehlo.add %i, %hide : tensor<200x130xi32>
  %b5 = stablehlo.compare GE, %h5, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a5, %b5 : tensor<200x130xi1>
  %a6 = stablehlo.compare EQ, %up, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h6 = stablehlo.add %up, %hide : tensor<200x130xi32>
  %b6 = stablehlo.compare EQ, %h6, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a6, %b6 : tensor<200x130xi1>
  %a7 = stablehlo.compare NE, %up, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h7 = stablehlo.add %up, %hide : tensor<200x130xi32>
  %b7 = stablehlo.compare NE, %h7, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a7, %b7 : tensor<200x130xi1>
  %a8 = stablehlo.compare LT, %up, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h8 = stablehlo.add %up, %hide : tensor<200x130xi32>
  %b8 = stablehlo.compare LT, %h8, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a8, %b8 : tensor<200x130xi1>
  %a9 = stablehlo.compare LE, %up, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h9 = stablehlo.add %up, %hide : tensor<200x130xi32>
  %b9 = stablehlo.compare LE, %h9, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a9, %b9 : tensor<200x130xi1>
  %a10 = stablehlo.compare GT, %up, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h10 = stablehlo.add %up, %hide : tensor<200x130xi32>
  %b10 = stablehlo.compare GT, %h10, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a10, %b10 : tensor<200x130xi1>
  %a11 = stablehlo.compare GE, %up, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h11 = stablehlo.add %up, %hide : tensor<200x130xi32>
  %b11 = stablehlo.compare GE, %h11, %j, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a11, %b11 : tensor<200x130xi1>
  %a12 = stablehlo.compare EQ, %j, %up, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h12 = stablehlo.add %j, %hide : tensor<200x130xi32>
  %b12 = stablehlo.compare EQ, %h12, %up, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a12, %b12 : tensor<200x130xi1>
  %a13 = stablehlo.compare NE, %j, %up, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h13 = stablehlo.add %j, %hide : tensor<200x130xi32>
  %b13 = stablehlo.compare NE, %h13, %up, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a13, %b13 : tensor<200x130xi1>
  %a14 = stablehlo.compare LT, %j, %up, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h14 = stablehlo.add %j, %hide : tensor<200x130xi32>
  %b14 = stablehlo.compare LT, %h14, %up, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a14, %b14 : tensor<200x130xi1>
  %a15 = stablehlo.compare LE, %j, %up, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h15 = stablehlo.add %j, %hide : tensor<200x130xi32>
  %b15 = stablehlo.compare LE, %h15, %up, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a15, %b15 : tensor<200x130xi1>
  %a16 = stablehlo.compare GT, %j, %up, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h16 = stablehlo.add %j, %hide : tensor<200x130xi32>
  %b16 = stablehlo.compare GT, %h16, %up, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a16, %b16 : tensor<200x130xi1>
  %a17 = stablehlo.compare GE, %j, %up, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h17 = stablehlo.add %j, %hide : tensor<200x130xi32>
  %b17 = stablehlo.compare GE, %h17, %up, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a17, %b17 : tensor<200x130xi1>
  %a18 = stablehlo.compare EQ, %down, %back, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h18 = stablehlo.add %down, %hide : tensor<200x130xi32>
  %b18 = stablehlo.compare EQ, %h18, %back, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a18, %b18 : tensor<200x130xi1>
  %a19 = stablehlo.compare NE, %down, %back, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h19 = stablehlo.add %down, %hide : tensor<200x130xi32>
  %b19 = stablehlo.compare NE, %h19, %back, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a19, %b19 : tensor<200x130xi1>
  %a20 = stablehlo.compare LT, %down, %back, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h20 = stablehlo.add %down, %hide : tensor<200x130xi32>
  %b20 = stablehlo.compare LT, %h20, %back, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a20, %b20 : tensor<200x130xi1>
  %a21 = stablehlo.compare LE, %down, %back, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h21 = stablehlo.add %down, %hide : tensor<200x130xi32>
  %b21 = stablehlo.compare LE, %h21, %back, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a21, %b21 : tensor<200x130xi1>
  %a22 = stablehlo.compare GT, %down, %back, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h22 = stablehlo.add %down, %hide : tensor<200x130xi32>
  %b22 = stablehlo.compare GT, %h22, %back, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a22, %b22 : tensor<200x130xi1>
  %a23 = stablehlo.compare GE, %down, %back, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  %h23 = stablehlo.add %down, %hide : tensor<200x130xi32>
  %b23 = stablehlo.compare GE, %h23, %back, SIGNED : (tensor<200x130xi32>, tensor<200x130xi32>) -> tensor<200x130xi1>
  check.expect_eq %a23, %b23 : tensor<200x130xi1>
  %r_widei32 = stablehlo.iota dim = 0 : tensor<3x5000xi32>
  %c_widei32 = stablehlo.iota dim = 1 : tensor<3x5000xi32>
  %k_widei32 = stablehlo.constant dense<2400> : tensor<3x5000xi32>
  %s_widei32 = stablehlo.add %r_widei32, %k_widei32 : tensor<3x5000xi32>
  %m_widei32 = stablehlo.compare GE, %s_widei32, %c_widei32, SIGNED : (tensor<3x5000xi32>, tensor<3x5000xi32>) -> tensor<3x5000xi1>
  %r_widef32 = stablehlo.iota dim = 0 : tensor<3x5000xf32>
  %c_widef32 = stablehlo.iota dim = 1 : tensor<3x5000xf32>
  %k_widef32 = stablehlo.constant dense<2400.0> : tensor<3x5000xf32>
  %s_widef32 = stablehlo.add %r_widef32, %k_widef32 : tensor<3x5000xf32>
  %m_widef32 = stablehlo.compare GE, %s_widef32, %c_widef32, FLOAT : (tensor<3x5000xf32>, tensor<3x5000xf32>) -> tensor<3x5000xi1>
  check.expect_eq %m_widei32, %m_widef32 : tensor<3x5000xi1>
  %r_manyi32 = stablehlo.iota dim = 1 : tensor<3x140x53xi32>
  %c_manyi32 = stablehlo.iota dim = 2 : tensor<3x140x53xi32>
  %k_manyi32 = stablehlo.constant dense<5> : tensor<3x140x53xi32>
  %s_manyi32 = stablehlo.add %r_manyi32, %k_manyi32 : tensor<3x140x53xi32>
  %m_manyi32 = stablehlo.compare LT, %s_manyi32, %c_manyi32, SIGNED : (tensor<3x140x53xi32>, tensor<3x140x53xi32>) -> tensor<3x140x53xi1>
  %r_manyf32 = stablehlo.iota dim = 1 : tensor<3x140x53xf32>
  %c_manyf32 = stablehlo.iota dim = 2 : tensor<3x140x53xf32>
  %k_manyf32 = stablehlo.constant dense<5.0> : tensor<3x140x53xf32>
  %s_manyf32 = stablehlo.add %r_manyf32, %k_manyf32 : tensor<3x140x53xf32>
  %m_manyf32 = stablehlo.compare LT, %s_manyf32, %c_manyf32, FLOAT : (tensor<3x140x53xf32>, tensor<3x140x53xf32>) -> tensor<3x140x53xi1>
  check.expect_eq %m_manyi32, %m_manyf32 : tensor<3x140x53xi1>
  %u = stablehlo.iota dim = 0 : tensor<128x160xui32>
  %v = stablehlo.iota dim = 1 : tensor<128x160xui32>
  %w = stablehlo.subtract %u, %v : tensor<128x160xui32>
  %five = stablehlo.constant dense<5> : tensor<128x160xui32>
  %p = stablehlo.compare GT, %w, %five, UNSIGNED : (tensor<128x160xui32>, tensor<128x160xui32>) -> tensor<128x160xi1>
  %q = stablehlo.slice %p [0:1, 0:4] : (tensor<128x160xi1>) -> tensor<1x4xi1>
  check.expect_eq_const %q, dense<[[false, true, true, true]]> : tensor<1x4xi1>
  %also = stablehlo.slice %j [0:1, 66:70] : (tensor<200x130xi32>) -> tensor<1x4xi32>
  check.expect_eq_const %also, dense<[[66, 67, 68, 69]]> : tensor<1x4xi32>
  return
}
