// Programs that read the same rows are one also where one of them drops: it draws for itself, wherever it stands.
// run: otrn compile %s --dump=rows --cache=off -o %t/a.otrn | grep -c otrn.rows
// expect: 4
// run: otrn compile %s --dump=join --cache=off -o %t/a.otrn | grep -c otrn.rows
// expect: 3
// run: otrn compile %s --cache=off --disable-pass=join -o %t/b.otrn
// run: otrn run %t/a.otrn --check --output=%t/a && otrn run %t/b.otrn --output=%t/b && for i in 0 1 2 3; do cmp %t/a/result_$i.npy %t/b/result_$i.npy || exit 1; done
func.func public @main() -> (tensor<2048x512xf32>, tensor<2048x512xf32>, tensor<512xf32>, tensor<512xf32>) {
  %i = stablehlo.iota dim = 0 : tensor<1048576xf32>
  %x0 = stablehlo.sine %i : tensor<1048576xf32>
  %x = stablehlo.reshape %x0 : (tensor<1048576xf32>) -> tensor<2048x512xf32>
  %w = stablehlo.slice %x [0:512, 0:512] : (tensor<2048x512xf32>) -> tensor<512x512xf32>
  %g0 = stablehlo.slice %x [5:6, 0:512] : (tensor<2048x512xf32>) -> tensor<1x512xf32>
  %g = stablehlo.reshape %g0 : (tensor<1x512xf32>) -> tensor<512xf32>
  %gb = stablehlo.broadcast_in_dim %g, dims = [1] : (tensor<512xf32>) -> tensor<2048x512xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %part = stablehlo.constant dense<0.001953125> : tensor<2048xf32>
  %eps = stablehlo.constant dense<1.0e-05> : tensor<2048xf32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2048x512xf32>, tensor<f32>) -> tensor<2048xf32>
  %mean = stablehlo.multiply %s, %part : tensor<2048xf32>
  %meanb = stablehlo.broadcast_in_dim %mean, dims = [0] : (tensor<2048xf32>) -> tensor<2048x512xf32>
  %c = stablehlo.subtract %x, %meanb : tensor<2048x512xf32>
  %c2 = stablehlo.multiply %c, %c : tensor<2048x512xf32>
  %v0 = stablehlo.reduce(%c2 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2048x512xf32>, tensor<f32>) -> tensor<2048xf32>
  %v1 = stablehlo.multiply %v0, %part : tensor<2048xf32>
  %v = stablehlo.add %v1, %eps : tensor<2048xf32>
  %r = stablehlo.rsqrt %v : tensor<2048xf32>
  %rb = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<2048xf32>) -> tensor<2048x512xf32>
  %n = stablehlo.multiply %c, %rb : tensor<2048x512xf32>
  %y = stablehlo.multiply %n, %gb : tensor<2048x512xf32>
  // what comes back
  %out = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<2048x512xf32>, tensor<512x512xf32>) -> tensor<2048x512xf32>
  %d0 = stablehlo.dot_general %out, %w, contracting_dims = [1] x [1] : (tensor<2048x512xf32>, tensor<512x512xf32>) -> tensor<2048x512xf32>
  %d1 = stablehlo.add %d0, %x : tensor<2048x512xf32>
  %db = stablehlo.reduce(%d1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2048x512xf32>, tensor<f32>) -> tensor<512xf32>
  %dgn = stablehlo.multiply %d1, %n : tensor<2048x512xf32>
  %dg = stablehlo.reduce(%dgn init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2048x512xf32>, tensor<f32>) -> tensor<512xf32>
  %dn = stablehlo.multiply %d1, %gb : tensor<2048x512xf32>
  %dnc = stablehlo.multiply %dn, %c : tensor<2048x512xf32>
  %p0 = stablehlo.reduce(%dnc init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2048x512xf32>, tensor<f32>) -> tensor<2048xf32>
  %p1 = stablehlo.multiply %p0, %part : tensor<2048xf32>
  %p1b = stablehlo.broadcast_in_dim %p1, dims = [0] : (tensor<2048xf32>) -> tensor<2048x512xf32>
  %q0 = stablehlo.multiply %dn, %rb : tensor<2048x512xf32>
  %q1 = stablehlo.multiply %c, %p1b : tensor<2048x512xf32>
  %dx = stablehlo.subtract %q0, %q1 : tensor<2048x512xf32>
  %key0 = stablehlo.constant dense<[7, 2654435769]> : tensor<2xui64>
  %key = stablehlo.optimization_barrier %key0 : tensor<2xui64>
  %st, %bits = stablehlo.rng_bit_generator %key, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2048x512xui32>)
  %nine = stablehlo.constant dense<9> : tensor<2048x512xui32>
  %upper = stablehlo.shift_right_logical %bits, %nine : tensor<2048x512xui32>
  %ones = stablehlo.constant dense<1065353216> : tensor<2048x512xui32>
  %word = stablehlo.or %upper, %ones : tensor<2048x512xui32>
  %float = stablehlo.bitcast_convert %word : (tensor<2048x512xui32>) -> tensor<2048x512xf32>
  %one = stablehlo.constant dense<1.0> : tensor<2048x512xf32>
  %unit = stablehlo.subtract %float, %one : tensor<2048x512xf32>
  %chance = stablehlo.constant dense<0.75> : tensor<2048x512xf32>
  %kept = stablehlo.compare LT, %unit, %chance : (tensor<2048x512xf32>, tensor<2048x512xf32>) -> tensor<2048x512xi1>
  %none = stablehlo.constant dense<0.0> : tensor<2048x512xf32>
  %dy = stablehlo.select %kept, %dx, %none : tensor<2048x512xi1>, tensor<2048x512xf32>
  return %out, %dy, %dg, %db : tensor<2048x512xf32>, tensor<2048x512xf32>, tensor<512xf32>, tensor<512xf32>
}
