// Sums over dimensions between others, and their results repeated along them: group norm, numbers per image and channel.
// run: otrn eval %s
// run: otrn run %s --disable-pass=fold
// run: otrn run %s --disable-pass=sums,rows
// run: otrn compile %s --disable-pass=fold --dump=rows -o %t/out.otrn
// expect: stablehlo.dot_general
// expect: array<i64: 3, 0>
func.func public @main() {
  %i0 = stablehlo.iota dim = 0 : tensor<2x64x16x8xf32>
  %i1 = stablehlo.iota dim = 1 : tensor<2x64x16x8xf32>
  %i2 = stablehlo.iota dim = 2 : tensor<2x64x16x8xf32>
  %i3 = stablehlo.iota dim = 3 : tensor<2x64x16x8xf32>
  %0 = stablehlo.add %i0, %i1 : tensor<2x64x16x8xf32>
  %1 = stablehlo.add %i2, %i3 : tensor<2x64x16x8xf32>
  %x = stablehlo.add %0, %1 : tensor<2x64x16x8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // groups of eight channels: 512 elements each, 512 a + 8 * 2016 + 512 g + 64 * 28
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1, 3] : (tensor<2x64x16x8xf32>, tensor<f32>) -> tensor<2x16xf32>
  %a = stablehlo.iota dim = 0 : tensor<2x16xf32>
  %g = stablehlo.iota dim = 1 : tensor<2x16xf32>
  %ag = stablehlo.add %a, %g : tensor<2x16xf32>
  %each = stablehlo.constant dense<512.0> : tensor<2x16xf32>
  %rest = stablehlo.constant dense<17920.0> : tensor<2x16xf32>
  %2 = stablehlo.multiply %ag, %each : tensor<2x16xf32>
  %want = stablehlo.add %2, %rest : tensor<2x16xf32>
  check.expect_eq %sum, %want : tensor<2x16xf32>
  // back to every element
  %back = stablehlo.broadcast_in_dim %sum, dims = [0, 2] : (tensor<2x16xf32>) -> tensor<2x64x16x8xf32>
  %y = stablehlo.subtract %back, %x : tensor<2x64x16x8xf32>
  %3 = stablehlo.constant dense<511.0> : tensor<2x64x16x8xf32>
  %4 = stablehlo.add %i0, %i2 : tensor<2x64x16x8xf32>
  %5 = stablehlo.multiply %4, %3 : tensor<2x64x16x8xf32>
  %6 = stablehlo.constant dense<17920.0> : tensor<2x64x16x8xf32>
  %7 = stablehlo.add %5, %6 : tensor<2x64x16x8xf32>
  %8 = stablehlo.add %i1, %i3 : tensor<2x64x16x8xf32>
  %9 = stablehlo.subtract %7, %8 : tensor<2x64x16x8xf32>
  check.expect_eq %y, %9 : tensor<2x64x16x8xf32>
  // per image and channel, blocks that do not begin with a tile of 128 rows
  %z = stablehlo.slice %x [0:2, 0:50, 0:16, 0:8] : (tensor<2x64x16x8xf32>) -> tensor<2x50x16x8xf32>
  %s = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x50x16x8xf32>, tensor<f32>) -> tensor<2x16x8xf32>
  %t = stablehlo.broadcast_in_dim %s, dims = [0, 2, 3] : (tensor<2x16x8xf32>) -> tensor<2x50x16x8xf32>
  %u = stablehlo.subtract %t, %z : tensor<2x50x16x8xf32>
  %v = stablehlo.slice %u [0:2, 49:50, 15:16, 6:8] : (tensor<2x50x16x8xf32>) -> tensor<2x1x1x2xf32>
  %w = stablehlo.reshape %v : (tensor<2x1x1x2xf32>) -> tensor<2x2xf32>
  check.expect_eq_const %w, dense<[[2205.0, 2254.0], [2254.0, 2303.0]]> : tensor<2x2xf32>
  // several rows in a partition
  %j0 = stablehlo.iota dim = 0 : tensor<2x512x64xf32>
  %j1 = stablehlo.iota dim = 1 : tensor<2x512x64xf32>
  %j2 = stablehlo.iota dim = 2 : tensor<2x512x64xf32>
  %j01 = stablehlo.add %j0, %j1 : tensor<2x512x64xf32>
  %j = stablehlo.add %j01, %j2 : tensor<2x512x64xf32>
  %k = stablehlo.reduce(%j init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x512x64xf32>, tensor<f32>) -> tensor<2x64xf32>
  %l = stablehlo.broadcast_in_dim %k, dims = [0, 2] : (tensor<2x64xf32>) -> tensor<2x512x64xf32>
  %m = stablehlo.subtract %l, %j : tensor<2x512x64xf32>
  %n = stablehlo.slice %m [0:2:1, 0:512:511, 1:64:62] : (tensor<2x512x64xf32>) -> tensor<2x2x2xf32>
  check.expect_eq_const %n, dense<[[[131327.0, 163009.0], [130816.0, 162498.0]], [[131838.0, 163520.0], [131327.0, 163009.0]]]> : tensor<2x2x2xf32>
  return
}
