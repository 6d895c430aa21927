// Large attention masked with -1e9 asks the run for the size of scores: far above it masked columns are left out, else they count. Same bits as
// without the pass, for scores near zero and for those below -1e9, which see masked columns and differ from a mask of -inf.
// run: otrn compile %s --dump=guards -o %t/a.otrn | sed -n 's/.*stablehlo.if"(.*/found a choice/p'
// run: otrn prof %s --lnc=1 --cache=off | grep note:
// run: mkdir %t/a %t/b; otrn run %s --output=%t/a >%t/log; otrn run %s --output=%t/b --disable-pass=guards >%t/log; cmp %t/a/result_0.npy %t/b/result_0.npy && echo near zero: same
// run: sed 's/dense<0.1>/dense<-1.0e+10>/' %s >%t/low.mlir; sed 's/dense<-1.0e+09>/dense<0xFF800000>/' %t/low.mlir >%t/inf.mlir
// run: mkdir %t/c %t/d %t/e; otrn run %t/low.mlir --output=%t/c >%t/log; otrn run %t/low.mlir --output=%t/d --disable-pass=guards >%t/log; otrn run %t/inf.mlir --output=%t/e >%t/log; cmp %t/c/result_0.npy %t/d/result_0.npy && echo low: same; cmp -s %t/c/result_0.npy %t/e/result_0.npy || echo low: not as -inf
// run: otrn run %s --check >%t/log && echo checked; otrn run %t/low.mlir --check >%t/log && echo checked low
// run: mkdir %t/f; otrn run %t/low.mlir --lnc=1 --plan=off --output=%t/f >%t/log; cmp %t/c/result_0.npy %t/f/result_0.npy && echo one core: same
// expect: found a choice
// expect: note: 1 branch left out that runs take only when scores come near the number they are masked with
// expect: near zero: same
// expect: low: same
// expect: low: not as -inf
// expect: checked
// expect: checked low
// expect: one core: same
module {
  func.func public @main() -> tensor<32x1024x32xbf16> {
    %n = stablehlo.iota dim = 0 : tensor<1048576xf32>
    %step = stablehlo.constant dense<0.37> : tensor<1048576xf32>
    %angle = stablehlo.multiply %n, %step : tensor<1048576xf32>
    %wave = stablehlo.sine %angle : tensor<1048576xf32>
    %square = stablehlo.multiply %wave, %wave : tensor<1048576xf32>
    %scale = stablehlo.constant dense<0.1> : tensor<1048576xf32>
    %big = stablehlo.multiply %square, %scale : tensor<1048576xf32>
    %k = stablehlo.convert %square : (tensor<1048576xf32>) -> tensor<1048576xbf16>
    %q = stablehlo.convert %big : (tensor<1048576xf32>) -> tensor<1048576xbf16>
    %v = stablehlo.convert %wave : (tensor<1048576xf32>) -> tensor<1048576xbf16>
    %queries = stablehlo.reshape %q : (tensor<1048576xbf16>) -> tensor<32x1024x32xbf16>
    %keys = stablehlo.reshape %k : (tensor<1048576xbf16>) -> tensor<32x1024x32xbf16>
    %values = stablehlo.reshape %v : (tensor<1048576xbf16>) -> tensor<32x1024x32xbf16>
    %s = stablehlo.dot_general %queries, %keys, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<32x1024x32xbf16>, tensor<32x1024x32xbf16>) -> tensor<32x1024x1024xf32>
    %row = stablehlo.iota dim = 0 : tensor<1024x1024xi32>
    %col = stablehlo.iota dim = 1 : tensor<1024x1024xi32>
    %below = stablehlo.compare GE, %row, %col : (tensor<1024x1024xi32>, tensor<1024x1024xi32>) -> tensor<1024x1024xi1>
    %mask = stablehlo.broadcast_in_dim %below, dims = [1, 2] : (tensor<1024x1024xi1>) -> tensor<32x1024x1024xi1>
    %fill = stablehlo.constant dense<-1.0e+09> : tensor<32x1024x1024xf32>
    %masked = stablehlo.select %mask, %s, %fill : tensor<32x1024x1024xi1>, tensor<32x1024x1024xf32>
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %most = stablehlo.reduce(%masked init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<32x1024x1024xf32>, tensor<f32>) -> tensor<32x1024xf32>
    %most_all = stablehlo.broadcast_in_dim %most, dims = [0, 1] : (tensor<32x1024xf32>) -> tensor<32x1024x1024xf32>
    %down = stablehlo.subtract %masked, %most_all : tensor<32x1024x1024xf32>
    %e = stablehlo.exponential %down : tensor<32x1024x1024xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<32x1024x1024xf32>, tensor<f32>) -> tensor<32x1024xf32>
    %sum_all = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<32x1024xf32>) -> tensor<32x1024x1024xf32>
    %p = stablehlo.divide %e, %sum_all : tensor<32x1024x1024xf32>
    %w = stablehlo.convert %p : (tensor<32x1024x1024xf32>) -> tensor<32x1024x1024xbf16>
    %y = stablehlo.dot_general %w, %values, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<32x1024x1024xbf16>, tensor<32x1024x32xbf16>) -> tensor<32x1024x32xbf16>
    return %y : tensor<32x1024x32xbf16>
  }
}
