// Masks that compare iotas: every direction, offsets, sizes that fill no tile, more than one of them, iotas that somebody else reads as
// well. Numbers of another type that say the same, but are computed, are what they are compared with; unsigned differences wrap.
// run: otrn eval %s
// run: otrn run %s --check
// run: otrn run %s --lnc=2 --target=trn3
// run: otrn run %s --disable-pass=counters
func.func public @main() {
  %r_a0i32 = stablehlo.iota dim = 0 : tensor<130x140xi32>
  %c_a0i32 = stablehlo.iota dim = 1 : tensor<130x140xi32>
  %k_a0i32 = stablehlo.constant dense<0> : tensor<130x140xi32>
  %s_a0i32 = stablehlo.add %r_a0i32, %k_a0i32 : tensor<130x140xi32>
  %m_a0i32 = stablehlo.compare GE, %s_a0i32, %c_a0i32, SIGNED : (tensor<130x140xi32>, tensor<130x140xi32>) -> tensor<130x140xi1>
  %r_a0f32 = stablehlo.iota dim = 0 : tensor<130x140xf32>
  %c_a0f32 = stablehlo.iota dim = 1 : tensor<130x140xf32>
  %k_a0f32 = stablehlo.constant dense<0.0> : tensor<130x140xf32>
  %s_a0f32 = stablehlo.add %r_a0f32, %k_a0f32 : tensor<130x140xf32>
  %m_a0f32 = stablehlo.compare GE, %s_a0f32, %c_a0f32, FLOAT : (tensor<130x140xf32>, tensor<130x140xf32>) -> tensor<130x140xi1>
  check.expect_eq %m_a0i32, %m_a0f32 : tensor<130x140xi1>
  %r_a1i32 = stablehlo.iota dim = 0 : tensor<130x140xi32>
  %c_a1i32 = stablehlo.iota dim = 1 : tensor<130x140xi32>
  %k_a1i32 = stablehlo.constant dense<3> : tensor<130x140xi32>
  %s_a1i32 = stablehlo.add %r_a1i32, %k_a1i32 : tensor<130x140xi32>
  %m_a1i32 = stablehlo.compare GT, %s_a1i32, %c_a1i32, SIGNED : (tensor<130x140xi32>, tensor<130x140xi32>) -> tensor<130x140xi1>
  %r_a1f32 = stablehlo.iota dim = 0 : tensor<130x140xf32>
  %c_a1f32 = stablehlo.iota dim = 1 : tensor<130x140xf32>
  %k_a1f32 = stablehlo.constant dense<3.0> : tensor<130x140xf32>
  %s_a1f32 = stablehlo.add %r_a1f32, %k_a1f32 : tensor<130x140xf32>
  %m_a1f32 = stablehlo.compare GT, %s_a1f32, %c_a1f32, FLOAT : (tensor<130x140xf32>, tensor<130x140xf32>) -> tensor<130x140xi1>
  check.expect_eq %m_a1i32, %m_a1f32 : tensor<130x140xi1>
  %r_a2i32 = stablehlo.iota dim = 0 : tensor<130x140xi32>
  %c_a2i32 = stablehlo.iota dim = 1 : tensor<130x140xi32>
  %k_a2i32 = stablehlo.constant dense<-2> : tensor<130x140xi32>
  %s_a2i32 = stablehlo.add %r_a2i32, %k_a2i32 : tensor<130x140xi32>
  %m_a2i32 = stablehlo.compare LE, %s_a2i32, %c_a2i32, SIGNED : (tensor<130x140xi32>, tensor<130x140xi32>) -> tensor<130x140xi1>
  %r_a2f32 = stablehlo.iota dim = 0 : tensor<130x140xf32>
  %c_a2f32 = stablehlo.iota dim = 1 : tensor<130x140xf32>
  %k_a2f32 = stablehlo.constant dense<-2.0> : tensor<130x140xf32>
  %s_a2f32 = stablehlo.add %r_a2f32, %k_a2f32 : tensor<130x140xf32>
  %m_a2f32 = stablehlo.compare LE, %s_a2f32, %c_a2f32, FLOAT : (tensor<130x140xf32>, tensor<130x140xf32>) -> tensor<130x140xi1>
  check.expect_eq %m_a2i32, %m_a2f32 : tensor<130x140xi1>
  %r_a3i32 = stablehlo.iota dim = 0 : tensor<130x140xi32>
  %c_a3i32 = stablehlo.iota dim = 1 : tensor<130x140xi32>
  %k_a3i32 = stablehlo.constant dense<7> : tensor<130x140xi32>
  %s_a3i32 = stablehlo.add %r_a3i32, %k_a3i32 : tensor<130x140xi32>
  %m_a3i32 = stablehlo.compare LT, %s_a3i32, %c_a3i32, SIGNED : (tensor<130x140xi32>, tensor<130x140xi32>) -> tensor<130x140xi1>
  %r_a3f32 = stablehlo.iota dim = 0 : tensor<130x140xf32>
  %c_a3f32 = stablehlo.iota dim = 1 : tensor<130x140xf32>
  %k_a3f32 = stablehlo.constant dense<7.0> : tensor<130x140xf32>
  %s_a3f32 = stablehlo.add %r_a3f32, %k_a3f32 : tensor<130x140xf32>
  %m_a3f32 = stablehlo.compare LT, %s_a3f32, %c_a3f32, FLOAT : (tensor<130x140xf32>, tensor<130x140xf32>) -> tensor<130x140xi1>
  check.expect_eq %m_a3i32, %m_a3f32 : tensor<130x140xi1>
  %r_a4i32 = stablehlo.iota dim = 0 : tensor<130x140xi32>
  %c_a4i32 = stablehlo.iota dim = 1 : tensor<130x140xi32>
  %k_a4i32 = stablehlo.constant dense<0> : tensor<130x140xi32>
  %s_a4i32 = stablehlo.add %r_a4i32, %k_a4i32 : tensor<130x140xi32>
  %m_a4i32 = stablehlo.compare EQ, %s_a4i32, %c_a4i32, SIGNED : (tensor<130x140xi32>, tensor<130x140xi32>) -> tensor<130x140xi1>
  %r_a4f32 = stablehlo.iota dim = 0 : tensor<130x140xf32>
  %c_a4f32 = stablehlo.iota dim = 1 : tensor<130x140xf32>
  %k_a4f32 = stablehlo.constant dense<0.0> : tensor<130x140xf32>
  %s_a4f32 = stablehlo.add %r_a4f32, %k_a4f32 : tensor<130x140xf32>
  %m_a4f32 = stablehlo.compare EQ, %s_a4f32, %c_a4f32, FLOAT : (tensor<130x140xf32>, tensor<130x140xf32>) -> tensor<130x140xi1>
  check.expect_eq %m_a4i32, %m_a4f32 : tensor<130x140xi1>
  %r_a5i32 = stablehlo.iota dim = 0 : tensor<130x140xi32>
  %c_a5i32 = stablehlo.iota dim = 1 : tensor<130x140xi32>
  %k_a5i32 = stablehlo.constant dense<1> : tensor<130x140xi32>
  %s_a5i32 = stablehlo.add %r_a5i32, %k_a5i32 : tensor<130x140xi32>
  %m_a5i32 = stablehlo.compare NE, %s_a5i32, %c_a5i32, SIGNED : (tensor<130x140xi32>, tensor<130x140xi32>) -> tensor<130x140xi1>
  %r_a5f32 = stablehlo.iota dim = 0 : tensor<130x140xf32>
  %c_a5f32 = stablehlo.iota dim = 1 : tensor<130x140xf32>
  %k_a5f32 = stablehlo.constant dense<1.0> : tensor<130x140xf32>
  %s_a5f32 = stablehlo.add %r_a5f32, %k_a5f32 : tensor<130x140xf32>
  %m_a5f32 = stablehlo.compare NE, %s_a5f32, %c_a5f32, FLOAT : (tensor<130x140xf32>, tensor<130x140xf32>) -> tensor<130x140xi1>
  check.expect_eq %m_a5i32, %m_a5f32 : tensor<130x140xi1>
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
  %also = stablehlo.slice %c_a0i32 [0:1, 66:70] : (tensor<130x140xi32>) -> tensor<1x4xi32>
  check.expect_eq_const %also, dense<[[66, 67, 68, 69]]> : tensor<1x4xi32>
  return
}
