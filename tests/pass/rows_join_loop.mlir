// In a loop over layers: a row program whose rows a sum across them reads, so that what goes on with those rows is another program, and that also
// needs this layer's scale, which is sliced and widened in between. They are one: rows are made once, and the scale stands before them.
// run: otrn compile %s --dump=rows --cache=off -o %t/a.otrn
// expect: "stablehlo.while"
// expect: "otrn.rows"
// expect: "stablehlo.dot_general"
// expect: "stablehlo.dynamic_slice"
// expect: "otrn.rows"
// run: otrn compile %s --dump=join --cache=off -o %t/a.otrn
// expect: "stablehlo.while"
// expect: "stablehlo.dynamic_slice"
// expect: :2 = "otrn.rows"
// expect: "stablehlo.dot_general"
// What is summed is whole: rows that nobody else reads add up with the program that makes them (tile/rows_sums.c), in another order.
// run: otrn compile %s --cache=off --disable-pass=join -o %t/b.otrn
// run: otrn run %t/a.otrn --check --output=%t/a && otrn run %t/b.otrn --output=%t/b && for i in 0 1; do cmp %t/a/result_$i.npy %t/b/result_$i.npy || exit 1; done
func.func public @main() -> (tensor<1024x1024xf32>, tensor<2x1024xf32>) {
  %i0 = stablehlo.iota dim = 0 : tensor<1048576xf32>
  %x0 = stablehlo.sine %i0 : tensor<1048576xf32>
  %two = stablehlo.constant dense<2.0> : tensor<1048576xf32>
  %x1 = stablehlo.multiply %x0, %two : tensor<1048576xf32>
  %x2 = stablehlo.round_nearest_even %x1 : tensor<1048576xf32>
  %x = stablehlo.reshape %x2 : (tensor<1048576xf32>) -> tensor<1024x1024xf32>
  %real = stablehlo.reshape %x0 : (tensor<1048576xf32>) -> tensor<1024x1024xf32>
  %sc0 = stablehlo.slice %real [3:5, 0:1024] : (tensor<1024x1024xf32>) -> tensor<2x1024xf32>
  %scales = stablehlo.convert %sc0 : (tensor<2x1024xf32>) -> tensor<2x1024xbf16>
  %empty = stablehlo.constant dense<0.0> : tensor<2x1024xf32>
  %start = stablehlo.constant dense<0> : tensor<i32>
  %f:3 = stablehlo.while(%i = %start, %g = %x, %sums = %empty) : tensor<i32>, tensor<1024x1024xf32>, tensor<2x1024xf32>
   cond {
    %n = stablehlo.constant dense<2> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %gn = stablehlo.multiply %g, %x : tensor<1024x1024xf32>
    %ds = stablehlo.reduce(%gn init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
    %s0 = stablehlo.dynamic_slice %scales, %i, %z, sizes = [1, 1024] : (tensor<2x1024xbf16>, tensor<i32>, tensor<i32>) -> tensor<1x1024xbf16>
    %s1 = stablehlo.reshape %s0 : (tensor<1x1024xbf16>) -> tensor<1024xbf16>
    %s = stablehlo.convert %s1 : (tensor<1024xbf16>) -> tensor<1024xf32>
    %sb = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
    %dn = stablehlo.multiply %gn, %sb : tensor<1024x1024xf32>
    %r = stablehlo.reduce(%dn init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1024x1024xf32>, tensor<f32>) -> tensor<1024xf32>
    %rb = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<1024xf32>) -> tensor<1024x1024xf32>
    %far = stablehlo.subtract %dn, %rb : tensor<1024x1024xf32>
    %next = stablehlo.round_nearest_even %far : tensor<1024x1024xf32>
    %d1 = stablehlo.reshape %ds : (tensor<1024xf32>) -> tensor<1x1024xf32>
    %all = stablehlo.dynamic_update_slice %sums, %d1, %i, %z : (tensor<2x1024xf32>, tensor<1x1024xf32>, tensor<i32>, tensor<i32>) -> tensor<2x1024xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %next, %all : tensor<i32>, tensor<1024x1024xf32>, tensor<2x1024xf32>
  }
  return %f#1, %f#2 : tensor<1024x1024xf32>, tensor<2x1024xf32>
}
