// Large Fourier transforms are products with roots of unity: short and long ones, along one dimension and along two, of what is real or gives it. Those of
// a row are kernels still, which is what the large ones are compared with.
// run: otrn run %s --cache=off --check && otrn run %s --cache=off --target=trn1
// run: otrn compile %s --cache=off -o %t/a.otrn --dump=parts | grep -c 'stablehlo.fft'
// expect: 6
func.func @main() {
  %i = stablehlo.iota dim = 0 : tensor<65536xf32>
  %c = stablehlo.constant dense<0.731> : tensor<65536xf32>
  %j = stablehlo.multiply %i, %c : tensor<65536xf32>
  %x = stablehlo.sine %j : tensor<65536xf32>
  %k = stablehlo.multiply %j, %c : tensor<65536xf32>
  %y = stablehlo.cosine %k : tensor<65536xf32>
  %z = stablehlo.complex %x, %y : tensor<65536xcomplex<f32>>
  %a0 = stablehlo.slice %z [0:24000] : (tensor<65536xcomplex<f32>>) -> tensor<24000xcomplex<f32>>
  %b0 = stablehlo.reshape %a0 : (tensor<24000xcomplex<f32>>) -> tensor<40x600xcomplex<f32>>
  %l0 = stablehlo.fft %b0, type = FFT, length = [600] : (tensor<40x600xcomplex<f32>>) -> tensor<40x600xcomplex<f32>>
  %d0 = stablehlo.slice %l0 [0:1, 0:600] : (tensor<40x600xcomplex<f32>>) -> tensor<1x600xcomplex<f32>>
  %e0 = stablehlo.slice %b0 [0:1, 0:600] : (tensor<40x600xcomplex<f32>>) -> tensor<1x600xcomplex<f32>>
  %s0 = stablehlo.fft %e0, type = FFT, length = [600] : (tensor<1x600xcomplex<f32>>) -> tensor<1x600xcomplex<f32>>
  %d0real = stablehlo.real %d0 : (tensor<1x600xcomplex<f32>>) -> tensor<1x600xf32>
  %s0real = stablehlo.real %s0 : (tensor<1x600xcomplex<f32>>) -> tensor<1x600xf32>
  "check.expect_almost_eq"(%d0real, %s0real) {tolerance = 1.0e-3 : f64} : (tensor<1x600xf32>, tensor<1x600xf32>) -> ()
  %d0imag = stablehlo.imag %d0 : (tensor<1x600xcomplex<f32>>) -> tensor<1x600xf32>
  %s0imag = stablehlo.imag %s0 : (tensor<1x600xcomplex<f32>>) -> tensor<1x600xf32>
  "check.expect_almost_eq"(%d0imag, %s0imag) {tolerance = 1.0e-3 : f64} : (tensor<1x600xf32>, tensor<1x600xf32>) -> ()
  %a1 = stablehlo.slice %z [0:18432] : (tensor<65536xcomplex<f32>>) -> tensor<18432xcomplex<f32>>
  %b1 = stablehlo.reshape %a1 : (tensor<18432xcomplex<f32>>) -> tensor<16x24x48xcomplex<f32>>
  %l1 = stablehlo.fft %b1, type = IFFT, length = [24, 48] : (tensor<16x24x48xcomplex<f32>>) -> tensor<16x24x48xcomplex<f32>>
  %d1 = stablehlo.slice %l1 [0:1, 0:24, 0:48] : (tensor<16x24x48xcomplex<f32>>) -> tensor<1x24x48xcomplex<f32>>
  %e1 = stablehlo.slice %b1 [0:1, 0:24, 0:48] : (tensor<16x24x48xcomplex<f32>>) -> tensor<1x24x48xcomplex<f32>>
  %s1 = stablehlo.fft %e1, type = IFFT, length = [24, 48] : (tensor<1x24x48xcomplex<f32>>) -> tensor<1x24x48xcomplex<f32>>
  %d1real = stablehlo.real %d1 : (tensor<1x24x48xcomplex<f32>>) -> tensor<1x24x48xf32>
  %s1real = stablehlo.real %s1 : (tensor<1x24x48xcomplex<f32>>) -> tensor<1x24x48xf32>
  "check.expect_almost_eq"(%d1real, %s1real) {tolerance = 1.0e-6 : f64} : (tensor<1x24x48xf32>, tensor<1x24x48xf32>) -> ()
  %d1imag = stablehlo.imag %d1 : (tensor<1x24x48xcomplex<f32>>) -> tensor<1x24x48xf32>
  %s1imag = stablehlo.imag %s1 : (tensor<1x24x48xcomplex<f32>>) -> tensor<1x24x48xf32>
  "check.expect_almost_eq"(%d1imag, %s1imag) {tolerance = 1.0e-6 : f64} : (tensor<1x24x48xf32>, tensor<1x24x48xf32>) -> ()
  %a2 = stablehlo.slice %x [0:65536] : (tensor<65536xf32>) -> tensor<65536xf32>
  %b2 = stablehlo.reshape %a2 : (tensor<65536xf32>) -> tensor<64x1024xf32>
  %l2 = stablehlo.fft %b2, type = RFFT, length = [1024] : (tensor<64x1024xf32>) -> tensor<64x513xcomplex<f32>>
  %d2 = stablehlo.slice %l2 [0:1, 0:513] : (tensor<64x513xcomplex<f32>>) -> tensor<1x513xcomplex<f32>>
  %e2 = stablehlo.slice %b2 [0:1, 0:1024] : (tensor<64x1024xf32>) -> tensor<1x1024xf32>
  %s2 = stablehlo.fft %e2, type = RFFT, length = [1024] : (tensor<1x1024xf32>) -> tensor<1x513xcomplex<f32>>
  %d2real = stablehlo.real %d2 : (tensor<1x513xcomplex<f32>>) -> tensor<1x513xf32>
  %s2real = stablehlo.real %s2 : (tensor<1x513xcomplex<f32>>) -> tensor<1x513xf32>
  "check.expect_almost_eq"(%d2real, %s2real) {tolerance = 1.0e-3 : f64} : (tensor<1x513xf32>, tensor<1x513xf32>) -> ()
  %d2imag = stablehlo.imag %d2 : (tensor<1x513xcomplex<f32>>) -> tensor<1x513xf32>
  %s2imag = stablehlo.imag %s2 : (tensor<1x513xcomplex<f32>>) -> tensor<1x513xf32>
  "check.expect_almost_eq"(%d2imag, %s2imag) {tolerance = 1.0e-3 : f64} : (tensor<1x513xf32>, tensor<1x513xf32>) -> ()
  %a3 = stablehlo.slice %z [0:32832] : (tensor<65536xcomplex<f32>>) -> tensor<32832xcomplex<f32>>
  %b3 = stablehlo.reshape %a3 : (tensor<32832xcomplex<f32>>) -> tensor<64x513xcomplex<f32>>
  %l3 = stablehlo.fft %b3, type = IRFFT, length = [1024] : (tensor<64x513xcomplex<f32>>) -> tensor<64x1024xf32>
  %d3 = stablehlo.slice %l3 [0:1, 0:1024] : (tensor<64x1024xf32>) -> tensor<1x1024xf32>
  %e3 = stablehlo.slice %b3 [0:1, 0:513] : (tensor<64x513xcomplex<f32>>) -> tensor<1x513xcomplex<f32>>
  %s3 = stablehlo.fft %e3, type = IRFFT, length = [1024] : (tensor<1x513xcomplex<f32>>) -> tensor<1x1024xf32>
  "check.expect_almost_eq"(%d3, %s3) {tolerance = 2.0e-6 : f64} : (tensor<1x1024xf32>, tensor<1x1024xf32>) -> ()
  %a4 = stablehlo.slice %z [0:12288] : (tensor<65536xcomplex<f32>>) -> tensor<12288xcomplex<f32>>
  %b4 = stablehlo.reshape %a4 : (tensor<12288xcomplex<f32>>) -> tensor<4x24x128xcomplex<f32>>
  %l4 = stablehlo.fft %b4, type = IRFFT, length = [24, 255] : (tensor<4x24x128xcomplex<f32>>) -> tensor<4x24x255xf32>
  %d4 = stablehlo.slice %l4 [0:1, 0:24, 0:255] : (tensor<4x24x255xf32>) -> tensor<1x24x255xf32>
  %e4 = stablehlo.slice %b4 [0:1, 0:24, 0:128] : (tensor<4x24x128xcomplex<f32>>) -> tensor<1x24x128xcomplex<f32>>
  %s4 = stablehlo.fft %e4, type = IRFFT, length = [24, 255] : (tensor<1x24x128xcomplex<f32>>) -> tensor<1x24x255xf32>
  "check.expect_almost_eq"(%d4, %s4) {tolerance = 2.0e-6 : f64} : (tensor<1x24x255xf32>, tensor<1x24x255xf32>) -> ()
  %a5 = stablehlo.slice %x [0:24576] : (tensor<65536xf32>) -> tensor<24576xf32>
  %b5 = stablehlo.reshape %a5 : (tensor<24576xf32>) -> tensor<256x96xf32>
  %l5 = stablehlo.fft %b5, type = RFFT, length = [96] : (tensor<256x96xf32>) -> tensor<256x49xcomplex<f32>>
  %d5 = stablehlo.slice %l5 [0:1, 0:49] : (tensor<256x49xcomplex<f32>>) -> tensor<1x49xcomplex<f32>>
  %e5 = stablehlo.slice %b5 [0:1, 0:96] : (tensor<256x96xf32>) -> tensor<1x96xf32>
  %s5 = stablehlo.fft %e5, type = RFFT, length = [96] : (tensor<1x96xf32>) -> tensor<1x49xcomplex<f32>>
  %d5real = stablehlo.real %d5 : (tensor<1x49xcomplex<f32>>) -> tensor<1x49xf32>
  %s5real = stablehlo.real %s5 : (tensor<1x49xcomplex<f32>>) -> tensor<1x49xf32>
  "check.expect_almost_eq"(%d5real, %s5real) {tolerance = 1.0e-4 : f64} : (tensor<1x49xf32>, tensor<1x49xf32>) -> ()
  %d5imag = stablehlo.imag %d5 : (tensor<1x49xcomplex<f32>>) -> tensor<1x49xf32>
  %s5imag = stablehlo.imag %s5 : (tensor<1x49xcomplex<f32>>) -> tensor<1x49xf32>
  "check.expect_almost_eq"(%d5imag, %s5imag) {tolerance = 1.0e-4 : f64} : (tensor<1x49xf32>, tensor<1x49xf32>) -> ()
  return
}
