// In a branch of a select its condition is known. A norm that is guarded inside and outside, as optax has it, sums once; so it does
// where the guard holds. A logarithm that is guarded twice selects once. What others read of the inner select stays. Same bits as without the pass.
// run: otrn compile %s --dump=dce --cache=off -o %t/a.otrn | awk '/stablehlo.select/ {n++} /"stablehlo.reduce"/ {m++} END {print n " selects, " m " sums"}'
// expect: 5 selects, 2 sums
// run: otrn run %s --cache=off --output=%t/a && otrn run %s --cache=off --disable-pass=branches --output=%t/b && otrn eval %s --output=%t/c
// run: for i in 0 1 2 3; do cmp %t/a/result_$i.npy %t/b/result_$i.npy || exit 1; done; for i in 1 2 3; do cmp %t/a/result_$i.npy %t/c/result_$i.npy || exit 1; done
func.func private @norm(%x: tensor<64x128xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.multiply %x, %x : tensor<64x128xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x128xf32>, tensor<f32>) -> tensor<f32>
  %r = stablehlo.sqrt %s : tensor<f32>
  return %r : tensor<f32>
}
func.func private @safe(%x: tensor<64x128xf32>) -> tensor<f32> {
  %least = stablehlo.constant dense<0.5> : tensor<f32>
  %leasts = stablehlo.constant dense<0.5> : tensor<1x1xf32>
  %n = func.call @norm(%x) : (tensor<64x128xf32>) -> tensor<f32>
  %n1 = stablehlo.reshape %n : (tensor<f32>) -> tensor<1x1xf32>
  %p1 = stablehlo.compare LE, %n1, %leasts, FLOAT : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xi1>
  %ps = stablehlo.broadcast_in_dim %p1, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<64x128xi1>
  %ones = stablehlo.constant dense<1.0> : tensor<64x128xf32>
  %masked = stablehlo.select %ps, %ones, %x : tensor<64x128xi1>, tensor<64x128xf32>
  %m = func.call @norm(%masked) : (tensor<64x128xf32>) -> tensor<f32>
  %p = stablehlo.compare LE, %n, %least, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %r = stablehlo.select %p, %least, %m : tensor<i1>, tensor<f32>
  return %r : tensor<f32>
}
func.func public @main() -> (tensor<f32>, tensor<f32>, tensor<64x128xf32>, tensor<64x128xf32>) {
  %i = stablehlo.iota dim = 1 : tensor<64x128xf32>
  %j = stablehlo.iota dim = 0 : tensor<64x128xf32>
  %x0 = stablehlo.subtract %i, %j : tensor<64x128xf32>
  %small = stablehlo.constant dense<1.0e-6> : tensor<64x128xf32>
  %x1 = stablehlo.multiply %x0, %small : tensor<64x128xf32>
  %a = func.call @safe(%x0) : (tensor<64x128xf32>) -> tensor<f32>
  %b = func.call @safe(%x1) : (tensor<64x128xf32>) -> tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<64x128xf32>
  %one = stablehlo.constant dense<1.0> : tensor<64x128xf32>
  %q = stablehlo.compare GT, %x0, %zero, FLOAT : (tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xi1>
  %in = stablehlo.select %q, %x0, %one : tensor<64x128xi1>, tensor<64x128xf32>
  %l = stablehlo.log %in : tensor<64x128xf32>
  %c = stablehlo.select %q, %l, %zero : tensor<64x128xi1>, tensor<64x128xf32>
  %in2 = stablehlo.select %q, %x0, %x1 : tensor<64x128xi1>, tensor<64x128xf32>
  %l2 = stablehlo.sqrt %in2 : tensor<64x128xf32>
  %c2 = stablehlo.select %q, %l2, %one : tensor<64x128xi1>, tensor<64x128xf32>
  %d = stablehlo.add %c2, %in2 : tensor<64x128xf32>
  return %a, %b, %c, %d : tensor<f32>, tensor<f32>, tensor<64x128xf32>, tensor<64x128xf32>
}
