// Row programs that read the same rows are one: the gradients of a layer norm's scale and of its operand read the same gradient; then the normal
// values are made again of what the operand's gradient reads anyway, and the forward program does not store them. Numbers per row are one operand, whoever reads them.
// run: otrn compile %s --dump=rows --cache=off -o %t/a.otrn
// expect: :4 = "otrn.rows"
// run: otrn compile %s --dump=join --cache=off -o %t/a.otrn
// expect: :4 = "otrn.rows"
// expect: :2 = "otrn.rows"
// run: otrn compile %s --dump=scores --cache=off -o %t/a.otrn
// expect: :3 = "otrn.rows"
// expect: :2 = "otrn.rows"
// expect: broadcast_dimensions = array<i64: 0, 2, 1, 0, 1>
// run: otrn compile %s --cache=off --disable-pass=join,scores -o %t/b.otrn
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
  return %out, %dx, %dg, %db : tensor<2048x512xf32>, tensor<2048x512xf32>, tensor<512xf32>, tensor<512xf32>
}
