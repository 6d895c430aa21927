// Causal masks and scores of any size (pass/mask.c): rows 0 to 69 have scores near -LOW, the others near 0. Where these are below what the mask puts in (FILL), a
// softmax looks at masked columns. -inf leaves columns out, whatever the scores; finite numbers only below scores with a bound, as a tanh gives them, or beyond 2e38 (0xFF333333 is 0.7 of the lowest number; below it, and nowhere else, are scores that it does not mask). The chip
// agrees with the same program whose mask nobody can see, forward and in the gradient of what is weighed; products are counted.
// run: for op in negate tanh; do for fill in 0xFF800000 0xFF7FFFFF 0xFF333333 -1.0e9 -100.0; do for low in 0.0 1.0e9 1.1e9 1.0e38 3.0e38; do [ $fill$low = 0xFF3333333.0e38 ] && continue; sed "s/FILL>/$fill>/; s/LOW>/$low>/; s/stablehlo.OP/stablehlo.$op/" %s > %t/a.mlir; otrn run %t/a.mlir --cache=off --check || echo failed $op $fill $low ; done; sed "s/FILL>/$fill>/; s/LOW>/1.0e9>/; s/stablehlo.OP/stablehlo.$op/" %s > %t/a.mlir; otrn run %t/a.mlir --cache=off --lnc=2 --target=trn3 || echo failed $op $fill; otrn compile %t/a.mlir --cache=off --target=trn2 --dump=tile -o %t/a.otrn | grep -c 'tensor: matmul'; done; done
// expect: 18
// expect: 18
// expect: 18
// expect: 20
// expect: 20
// expect: 18
// expect: 18
// expect: 18
// expect: 18
// expect: 20
// expect-not: failed
func.func public @main() {
  %n = stablehlo.iota dim = 0 : tensor<16384xf32>
  %f0 = stablehlo.constant dense<0.37> : tensor<16384xf32>
  %f1 = stablehlo.constant dense<0.41> : tensor<16384xf32>
  %f2 = stablehlo.constant dense<0.59> : tensor<16384xf32>
  %a0 = stablehlo.multiply %n, %f0 : tensor<16384xf32>
  %a1 = stablehlo.multiply %n, %f1 : tensor<16384xf32>
  %a2 = stablehlo.multiply %n, %f2 : tensor<16384xf32>
  %s0 = stablehlo.sine %a0 : tensor<16384xf32>
  %s1 = stablehlo.sine %a1 : tensor<16384xf32>
  %s2 = stablehlo.sine %a2 : tensor<16384xf32>
  %small = stablehlo.reshape %s0 : (tensor<16384xf32>) -> tensor<1x256x64xf32>
  %v = stablehlo.reshape %s1 : (tensor<16384xf32>) -> tensor<1x256x64xf32>
  %g = stablehlo.reshape %s2 : (tensor<16384xf32>) -> tensor<1x256x64xf32>
  %row = stablehlo.iota dim = 1 : tensor<1x256x64xi32>
  %until = stablehlo.constant dense<70> : tensor<1x256x64xi32>
  %few = stablehlo.compare LT, %row, %until, SIGNED : (tensor<1x256x64xi32>, tensor<1x256x64xi32>) -> tensor<1x256x64xi1>
  %low = stablehlo.constant dense<LOW> : tensor<1x256x64xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<1x256x64xf32>
  %down = stablehlo.select %few, %low, %zero : tensor<1x256x64xi1>, tensor<1x256x64xf32>
  %part = stablehlo.constant dense<0.015625> : tensor<1x256x64xf32>
  %shift = stablehlo.multiply %down, %part : tensor<1x256x64xf32>
  %q = stablehlo.add %small, %shift : tensor<1x256x64xf32>
  %one = stablehlo.constant dense<1.0> : tensor<1x256x64xf32>
  %k = stablehlo.add %one, %zero : tensor<1x256x64xf32>
  %dot = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<1x256x64xf32>, tensor<1x256x64xf32>) -> tensor<1x256x256xf32>
  %scores = stablehlo.OP %dot : tensor<1x256x256xf32>
  %i = stablehlo.iota dim = 0 : tensor<256x256xi32>
  %j = stablehlo.iota dim = 1 : tensor<256x256xi32>
  %tri = stablehlo.compare GE, %i, %j, SIGNED : (tensor<256x256xi32>, tensor<256x256xi32>) -> tensor<256x256xi1>
  %mask = stablehlo.broadcast_in_dim %tri, dims = [1, 2] : (tensor<256x256xi1>) -> tensor<1x256x256xi1>
  %fill = stablehlo.constant dense<FILL> : tensor<1x256x256xf32>
  %masked = stablehlo.select %mask, %scores, %fill : tensor<1x256x256xi1>, tensor<1x256x256xf32>
  %empty = stablehlo.constant dense<0> : tensor<i32>
  %bits = stablehlo.popcnt %empty : tensor<i32>
  %nothing = "stablehlo.optimization_barrier"(%bits) : (tensor<i32>) -> tensor<i32>
  %hide = stablehlo.broadcast_in_dim %nothing, dims = [] : (tensor<i32>) -> tensor<256x256xi32>
  %i2 = stablehlo.add %i, %hide : tensor<256x256xi32>
  %tri2 = stablehlo.compare GE, %i2, %j, SIGNED : (tensor<256x256xi32>, tensor<256x256xi32>) -> tensor<256x256xi1>
  %mask2 = stablehlo.broadcast_in_dim %tri2, dims = [1, 2] : (tensor<256x256xi1>) -> tensor<1x256x256xi1>
  %unseen = stablehlo.select %mask2, %scores, %fill : tensor<1x256x256xi1>, tensor<1x256x256xf32>
  %out:2 = call @attend(%masked, %v, %g) : (tensor<1x256x256xf32>, tensor<1x256x64xf32>, tensor<1x256x64xf32>) -> (tensor<1x256x64xf32>, tensor<1x256x64xf32>)
  %ref:2 = call @attend(%unseen, %v, %g) : (tensor<1x256x256xf32>, tensor<1x256x64xf32>, tensor<1x256x64xf32>) -> (tensor<1x256x64xf32>, tensor<1x256x64xf32>)
  check.expect_close %out#0, %ref#0, max_ulp_difference = 64, min_ulp_difference = 0 : tensor<1x256x64xf32>, tensor<1x256x64xf32>
  check.expect_close %out#1, %ref#1, max_ulp_difference = 64, min_ulp_difference = 0 : tensor<1x256x64xf32>, tensor<1x256x64xf32>
  return
}
func.func private @attend(%s: tensor<1x256x256xf32>, %v: tensor<1x256x64xf32>, %g: tensor<1x256x64xf32>) -> (tensor<1x256x64xf32>, tensor<1x256x64xf32>) {
  %none = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %max = stablehlo.reduce(%s init: %none) applies stablehlo.maximum across dimensions = [2] : (tensor<1x256x256xf32>, tensor<f32>) -> tensor<1x256xf32>
  %maxes = stablehlo.broadcast_in_dim %max, dims = [0, 1] : (tensor<1x256xf32>) -> tensor<1x256x256xf32>
  %d = stablehlo.subtract %s, %maxes : tensor<1x256x256xf32>
  %e = stablehlo.exponential %d : tensor<1x256x256xf32>
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<1x256x256xf32>, tensor<f32>) -> tensor<1x256xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<1x256xf32>) -> tensor<1x256x256xf32>
  %p = stablehlo.divide %e, %sums : tensor<1x256x256xf32>
  %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<1x256x256xf32>, tensor<1x256x64xf32>) -> tensor<1x256x64xf32>
  %dv = stablehlo.dot_general %p, %g, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<1x256x256xf32>, tensor<1x256x64xf32>) -> tensor<1x256x64xf32>
  return %o, %dv : tensor<1x256x64xf32>, tensor<1x256x64xf32>
}
