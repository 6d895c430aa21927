// Arguments of update.mlir.
func.func public @main() -> (tensor<256x256xf32>, tensor<256x512xf32>, tensor<256x512xf32>, tensor<256x512xf32>, tensor<256x200xf32>, tensor<256x200xf32>, tensor<256x200xf32>, tensor<i32>) {
  %x0 = stablehlo.iota dim = 0 : tensor<256x256xf32>
  %x1 = stablehlo.iota dim = 1 : tensor<256x256xf32>
  %x2 = stablehlo.constant dense<0.37> : tensor<256x256xf32>
  %x3 = stablehlo.multiply %x1, %x2 : tensor<256x256xf32>
  %x4 = stablehlo.add %x0, %x3 : tensor<256x256xf32>
  %x5 = stablehlo.sine %x4 : tensor<256x256xf32>
  %x6 = stablehlo.constant dense<0.05> : tensor<256x256xf32>
  %x = stablehlo.multiply %x5, %x6 : tensor<256x256xf32>
  %w0 = stablehlo.iota dim = 0 : tensor<256x512xf32>
  %w1 = stablehlo.iota dim = 1 : tensor<256x512xf32>
  %w2 = stablehlo.constant dense<0.61> : tensor<256x512xf32>
  %w3 = stablehlo.multiply %w1, %w2 : tensor<256x512xf32>
  %w4 = stablehlo.add %w0, %w3 : tensor<256x512xf32>
  %w5 = stablehlo.sine %w4 : tensor<256x512xf32>
  %w6 = stablehlo.constant dense<0.05> : tensor<256x512xf32>
  %w = stablehlo.multiply %w5, %w6 : tensor<256x512xf32>
  %m0 = stablehlo.iota dim = 0 : tensor<256x512xf32>
  %m1 = stablehlo.iota dim = 1 : tensor<256x512xf32>
  %m2 = stablehlo.constant dense<0.13> : tensor<256x512xf32>
  %m3 = stablehlo.multiply %m1, %m2 : tensor<256x512xf32>
  %m4 = stablehlo.add %m0, %m3 : tensor<256x512xf32>
  %m5 = stablehlo.sine %m4 : tensor<256x512xf32>
  %m6 = stablehlo.constant dense<0.05> : tensor<256x512xf32>
  %m = stablehlo.multiply %m5, %m6 : tensor<256x512xf32>
  %v0 = stablehlo.iota dim = 0 : tensor<256x512xf32>
  %v1 = stablehlo.iota dim = 1 : tensor<256x512xf32>
  %v2 = stablehlo.constant dense<0.71> : tensor<256x512xf32>
  %v3 = stablehlo.multiply %v1, %v2 : tensor<256x512xf32>
  %v4 = stablehlo.add %v0, %v3 : tensor<256x512xf32>
  %v5 = stablehlo.sine %v4 : tensor<256x512xf32>
  %v6 = stablehlo.constant dense<0.05> : tensor<256x512xf32>
  %v = stablehlo.multiply %v5, %v5 : tensor<256x512xf32>
  %ww0 = stablehlo.iota dim = 0 : tensor<256x200xf32>
  %ww1 = stablehlo.iota dim = 1 : tensor<256x200xf32>
  %ww2 = stablehlo.constant dense<0.43> : tensor<256x200xf32>
  %ww3 = stablehlo.multiply %ww1, %ww2 : tensor<256x200xf32>
  %ww4 = stablehlo.add %ww0, %ww3 : tensor<256x200xf32>
  %ww5 = stablehlo.sine %ww4 : tensor<256x200xf32>
  %ww6 = stablehlo.constant dense<0.05> : tensor<256x200xf32>
  %ww = stablehlo.multiply %ww5, %ww6 : tensor<256x200xf32>
  %mm0 = stablehlo.iota dim = 0 : tensor<256x200xf32>
  %mm1 = stablehlo.iota dim = 1 : tensor<256x200xf32>
  %mm2 = stablehlo.constant dense<0.19> : tensor<256x200xf32>
  %mm3 = stablehlo.multiply %mm1, %mm2 : tensor<256x200xf32>
  %mm4 = stablehlo.add %mm0, %mm3 : tensor<256x200xf32>
  %mm5 = stablehlo.sine %mm4 : tensor<256x200xf32>
  %mm6 = stablehlo.constant dense<0.05> : tensor<256x200xf32>
  %mm = stablehlo.multiply %mm5, %mm6 : tensor<256x200xf32>
  %vv0 = stablehlo.iota dim = 0 : tensor<256x200xf32>
  %vv1 = stablehlo.iota dim = 1 : tensor<256x200xf32>
  %vv2 = stablehlo.constant dense<0.83> : tensor<256x200xf32>
  %vv3 = stablehlo.multiply %vv1, %vv2 : tensor<256x200xf32>
  %vv4 = stablehlo.add %vv0, %vv3 : tensor<256x200xf32>
  %vv5 = stablehlo.sine %vv4 : tensor<256x200xf32>
  %vv6 = stablehlo.constant dense<0.05> : tensor<256x200xf32>
  %vv = stablehlo.multiply %vv5, %vv5 : tensor<256x200xf32>
  %c = stablehlo.constant dense<6> : tensor<i32>
  return %x, %w, %m, %v, %ww, %mm, %vv, %c : tensor<256x256xf32>, tensor<256x512xf32>, tensor<256x512xf32>, tensor<256x512xf32>, tensor<256x200xf32>, tensor<256x200xf32>, tensor<256x200xf32>, tensor<i32>
}
