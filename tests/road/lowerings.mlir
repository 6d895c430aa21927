// Operations that have a lowering of their own, each as large as it asks: pooling, running sums, argmax, the gradients by the kernel of
// depthwise and of grouped convolutions, rows between products whose columns come in chunks, and a top k that XLA calls approximate.
// Numbers are small integers, so the chip gives the evaluator's bits, on one core, on two, and where the array turns operands.
// run: otrn compile %s --cache=off --lnc=1 --dump=nest -o %t/a.otrn | grep -oE '^# [0-9]+ (pool|scan|depthwise|conv|block|kernel sort)' | cut -d' ' -f3 | sort | uniq -c
// expect: 1 block
// expect: 1 conv
// expect: 1 depthwise
// expect: 1 kernel
// expect: 2 pool
// expect: 2 scan
// run: otrn run %t/a.otrn --check --output=%t/a && otrn eval %s --output=%t/b
// run: otrn run %s --cache=off --target=trn1 --output=%t/c && otrn run %s --cache=off --lnc=2 --check --output=%t/d
// run: for i in 0 1 2 3 4 5 6 7 8 9; do for k in a c d; do cmp %t/b/result_$i.npy %t/$k/result_$i.npy || exit 1; done; done
module @lowerings {
  func.func private @greater(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
    %0 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %0 : tensor<i1>
  }
  func.func public @main() -> (tensor<2x16x16x32xf32>, tensor<2x16x16x32xf32>, tensor<4096x128xf32>, tensor<4096x128xf32>, tensor<1024x128xf32>, tensor<1024xi32>, tensor<3x3x1x32xf32>, tensor<3x3x4x32xf32>, tensor<256x64xf32>, tensor<64x3xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %none = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.iota dim = 0 : tensor<589824xf32>
    %seven = stablehlo.constant dense<7.0> : tensor<589824xf32>
    %three = stablehlo.constant dense<3.0> : tensor<589824xf32>
    %r = stablehlo.remainder %n, %seven : tensor<589824xf32>
    %all = stablehlo.subtract %r, %three : tensor<589824xf32>
    %x0 = stablehlo.slice %all [5:65541] : (tensor<589824xf32>) -> tensor<65536xf32>
    %image = stablehlo.reshape %x0 : (tensor<65536xf32>) -> tensor<2x32x32x32xf32>
    %most = "stablehlo.reduce_window"(%image, %low) <{window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>, padding = dense<[[0, 0], [0, 1], [0, 1], [0, 0]]> : tensor<4x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<2x32x32x32xf32>, tensor<f32>) -> tensor<2x16x16x32xf32>
    %sums = "stablehlo.reduce_window"(%image, %zero) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<2x32x32x32xf32>, tensor<f32>) -> tensor<2x16x16x32xf32>
    %x1 = stablehlo.slice %all [0:524288] : (tensor<589824xf32>) -> tensor<524288xf32>
    %rows = stablehlo.reshape %x1 : (tensor<524288xf32>) -> tensor<4096x128xf32>
    %running = "stablehlo.reduce_window"(%rows, %zero) <{window_dimensions = array<i64: 1, 128>, padding = dense<[[0, 0], [127, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4096x128xf32>, tensor<f32>) -> tensor<4096x128xf32>
    %back = "stablehlo.reduce_window"(%rows, %low) <{window_dimensions = array<i64: 1, 128>, padding = dense<[[0, 0], [0, 127]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4096x128xf32>, tensor<f32>) -> tensor<4096x128xf32>
    %x2 = stablehlo.slice %all [11:131083] : (tensor<589824xf32>) -> tensor<131072xf32>
    %table = stablehlo.reshape %x2 : (tensor<131072xf32>) -> tensor<1024x128xf32>
    %places = stablehlo.iota dim = 1 : tensor<1024x128xi32>
    %arg:2 = stablehlo.reduce(%table init: %low), (%places init: %none) across dimensions = [1] : (tensor<1024x128xf32>, tensor<1024x128xi32>, tensor<f32>, tensor<i32>) -> (tensor<1024xf32>, tensor<1024xi32>)
     reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %0 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %1 = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %2 = stablehlo.or %0, %1 : tensor<i1>
      %3 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.compare LT, %i, %j, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %5 = stablehlo.and %3, %4 : tensor<i1>
      %6 = stablehlo.or %2, %5 : tensor<i1>
      %7 = stablehlo.select %2, %a, %b : tensor<i1>, tensor<f32>
      %8 = stablehlo.select %6, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %7, %8 : tensor<f32>, tensor<i32>
    }
    %best = stablehlo.broadcast_in_dim %arg#0, dims = [0] : (tensor<1024xf32>) -> tensor<1024x128xf32>
    %x3 = stablehlo.slice %all [2:32770] : (tensor<589824xf32>) -> tensor<32768xf32>
    %in = stablehlo.reshape %x3 : (tensor<32768xf32>) -> tensor<4x16x16x32xf32>
    %x4 = stablehlo.slice %all [9:32777] : (tensor<589824xf32>) -> tensor<32768xf32>
    %dy = stablehlo.reshape %x4 : (tensor<32768xf32>) -> tensor<4x16x16x32xf32>
    %depthwise = stablehlo.convolution(%in, %dy) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 32 : i64, feature_group_count = 1 : i64} : (tensor<4x16x16x32xf32>, tensor<4x16x16x32xf32>) -> tensor<3x3x1x32xf32>
    %grouped = stablehlo.convolution(%in, %dy) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 8 : i64, feature_group_count = 1 : i64} : (tensor<4x16x16x32xf32>, tensor<4x16x16x32xf32>) -> tensor<3x3x4x32xf32>
    %q0 = stablehlo.slice %all [0:16384] : (tensor<589824xf32>) -> tensor<16384xf32>
    %q = stablehlo.reshape %q0 : (tensor<16384xf32>) -> tensor<1x256x64xf32>
    %k0 = stablehlo.slice %all [3:524291] : (tensor<589824xf32>) -> tensor<524288xf32>
    %signs = stablehlo.sign %k0 : tensor<524288xf32>
    %k = stablehlo.reshape %signs : (tensor<524288xf32>) -> tensor<1x8192x64xf32>
    %score = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<1x256x64xf32>, tensor<1x8192x64xf32>) -> tensor<1x256x8192xf32>
    %top = stablehlo.reduce(%score init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<1x256x8192xf32>, tensor<f32>) -> tensor<1x256xf32>
    %tops = stablehlo.broadcast_in_dim %top, dims = [0, 1] : (tensor<1x256xf32>) -> tensor<1x256x8192xf32>
    %below = stablehlo.subtract %score, %tops : tensor<1x256x8192xf32>
    %attended = stablehlo.dot_general %below, %k, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<1x256x8192xf32>, tensor<1x8192x64xf32>) -> tensor<1x256x64xf32>
    %out = stablehlo.reshape %attended : (tensor<1x256x64xf32>) -> tensor<256x64xf32>
    %x5 = stablehlo.slice %all [1:1217] : (tensor<589824xf32>) -> tensor<1216xf32>
    %list = stablehlo.reshape %x5 : (tensor<1216xf32>) -> tensor<64x19xf32>
    %numbers = stablehlo.iota dim = 1 : tensor<64x19xi32>
    %found:2 = stablehlo.custom_call @ApproxTopK(%list, %numbers, %low, %none) {called_computations = [@greater], mhlo.backend_config = {reduction_dim = 1 : i64, top_k = 3 : i64}} : (tensor<64x19xf32>, tensor<64x19xi32>, tensor<f32>, tensor<i32>) -> (tensor<64x3xf32>, tensor<64x3xi32>)
    return %most, %sums, %running, %back, %best, %arg#1, %depthwise, %grouped, %out, %found#0 : tensor<2x16x16x32xf32>, tensor<2x16x16x32xf32>, tensor<4096x128xf32>, tensor<4096x128xf32>, tensor<1024x128xf32>, tensor<1024xi32>, tensor<3x3x1x32xf32>, tensor<3x3x4x32xf32>, tensor<256x64xf32>, tensor<64x3xf32>
  }
}
