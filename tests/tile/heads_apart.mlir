// Heads of attention are written side by side into the rows of one tensor, in two queues: no store waits for another, because their columns do not meet.
// run: for t in trn1 trn2; do otrn compile %s --cache=off --lnc=1 --target=$t -o %t/$t.otrn && otrn dis %t/$t.otrn | grep 'dma dst=result0' > %t/$t.s; grep -cE 'wait\([^)]*q[45]' %t/$t.s; for q in 4 5; do grep -q queue=$q %t/$t.s && echo queue $q is used; done; done; echo end
// expect: 0
// expect: queue 4 is used
// expect: queue 5 is used
// expect: 0
// expect: queue 4 is used
// expect: queue 5 is used
// expect: end
// run: otrn run %s --cache=off --lnc=1 --check --output=%t/a && otrn run %s --cache=off --lnc=2 --check --output=%t/b && for i in 0 1 2; do cmp %t/a/result_$i.npy %t/b/result_$i.npy || exit 1; done; echo same
// expect: same
module {
  func.func public @main() -> (tensor<256x8x64xf32>, tensor<8x256xf32>, tensor<8x256xf32>) {
    %0 = stablehlo.iota dim = 0 : tensor<131072xf32>
    %1 = stablehlo.reshape %0 : (tensor<131072xf32>) -> tensor<256x8x64xf32>
    %2 = stablehlo.sine %1 : tensor<256x8x64xf32>
    %3 = stablehlo.cosine %1 : tensor<256x8x64xf32>
    %4 = stablehlo.dot_general %2, %3, batching_dims = [1] x [1], contracting_dims = [2] x [2] : (tensor<256x8x64xf32>, tensor<256x8x64xf32>) -> tensor<8x256x256xf32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %5 = stablehlo.reduce(%4 init: %cst) applies stablehlo.maximum across dimensions = [2] : (tensor<8x256x256xf32>, tensor<f32>) -> tensor<8x256xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<8x256xf32>) -> tensor<8x256x1xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1, 2] : (tensor<8x256x1xf32>) -> tensor<8x256x256xf32>
    %8 = stablehlo.subtract %4, %7 : tensor<8x256x256xf32>
    %9 = stablehlo.exponential %8 : tensor<8x256x256xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.reduce(%9 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<8x256x256xf32>, tensor<f32>) -> tensor<8x256xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<8x256xf32>) -> tensor<8x256x1xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2] : (tensor<8x256x1xf32>) -> tensor<8x256x256xf32>
    %13 = stablehlo.divide %9, %12 : tensor<8x256x256xf32>
    %14 = stablehlo.dot_general %3, %13, batching_dims = [1] x [0], contracting_dims = [0] x [2] : (tensor<256x8x64xf32>, tensor<8x256x256xf32>) -> tensor<8x64x256xf32>
    %15 = stablehlo.transpose %14, dims = [2, 0, 1] : (tensor<8x64x256xf32>) -> tensor<256x8x64xf32>
    %16 = stablehlo.reshape %11 : (tensor<8x256x1xf32>) -> tensor<8x256xf32>
    %17 = stablehlo.log %16 : tensor<8x256xf32>
    %18 = stablehlo.reshape %6 : (tensor<8x256x1xf32>) -> tensor<8x256xf32>
    %19 = stablehlo.add %17, %18 : tensor<8x256xf32>
    %20 = stablehlo.reshape %6 : (tensor<8x256x1xf32>) -> tensor<8x256xf32>
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %21 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<8x256xf32>
    %22 = stablehlo.multiply %20, %21 : tensor<8x256xf32>
    return %15, %19, %22 : tensor<256x8x64xf32>, tensor<8x256xf32>, tensor<8x256xf32>
  }
}
