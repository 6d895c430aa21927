// Row programs: layer norm, softmax with a mask that repeats, a sum of rows too long to hold, short rows side by side,
// flat work with a remainder. The chip agrees with the evaluator.
// run: otrn compile %s --cache=off --dump=rows -o %t/rows.otrn > %t/rows.mlir && grep -c '"otrn.rows"' %t/rows.mlir
// expect: 9
// run: otrn run %t/rows.otrn --output=%t/a && otrn eval %t/rows.mlir --output=%t/b
// run: otrn eval %S/data/rows_same.mlir --input=%t/a/result_0.npy,%t/a/result_1.npy,%t/a/result_2.npy,%t/a/result_3.npy,%t/a/result_4.npy,%t/a/result_5.npy,%t/a/result_6.npy,%t/b/result_0.npy,%t/b/result_1.npy,%t/b/result_2.npy,%t/b/result_3.npy,%t/b/result_4.npy,%t/b/result_5.npy,%t/b/result_6.npy
func.func public @main() -> (tensor<2x150x96xf32>, tensor<3x130x64xf32>, tensor<40x9001xf32>, tensor<40xf32>, tensor<3000x6xf32>, tensor<8193xf32>, tensor<40x9001xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  // layer norm
  %i = stablehlo.iota dim = 0 : tensor<28800xf32>
  %k = stablehlo.constant dense<0.37> : tensor<28800xf32>
  %ik = stablehlo.multiply %i, %k : tensor<28800xf32>
  %s = stablehlo.sine %ik : tensor<28800xf32>
  %x = stablehlo.reshape %s : (tensor<28800xf32>) -> tensor<2x150x96xf32>
  %gamma = stablehlo.iota dim = 0 : tensor<96xf32>
  %gw = stablehlo.broadcast_in_dim %gamma, dims = [2] : (tensor<96xf32>) -> tensor<2x150x96xf32>
  %c = stablehlo.constant dense<96.0> : tensor<2x150xf32>
  %sum = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [2] : (tensor<2x150x96xf32>, tensor<f32>) -> tensor<2x150xf32>
  %mean = stablehlo.divide %sum, %c : tensor<2x150xf32>
  %mw = stablehlo.broadcast_in_dim %mean, dims = [0, 1] : (tensor<2x150xf32>) -> tensor<2x150x96xf32>
  %d = stablehlo.subtract %x, %mw : tensor<2x150x96xf32>
  %dd = stablehlo.multiply %d, %d : tensor<2x150x96xf32>
  %ss = stablehlo.reduce(%dd init: %z) applies stablehlo.add across dimensions = [2] : (tensor<2x150x96xf32>, tensor<f32>) -> tensor<2x150xf32>
  %var = stablehlo.divide %ss, %c : tensor<2x150xf32>
  %rs = stablehlo.rsqrt %var : tensor<2x150xf32>
  %rw = stablehlo.broadcast_in_dim %rs, dims = [0, 1] : (tensor<2x150xf32>) -> tensor<2x150x96xf32>
  %n = stablehlo.multiply %d, %rw : tensor<2x150x96xf32>
  %r0 = stablehlo.multiply %n, %gw : tensor<2x150x96xf32>
  // softmax with a mask for every one of three
  %j = stablehlo.iota dim = 2 : tensor<3x130x64xf32>
  %jr = stablehlo.iota dim = 1 : tensor<3x130x64xf32>
  %js = stablehlo.multiply %j, %jr : tensor<3x130x64xf32>
  %jc = stablehlo.cosine %js : tensor<3x130x64xf32>
  %m0 = stablehlo.iota dim = 0 : tensor<130x64xf32>
  %m1 = stablehlo.iota dim = 1 : tensor<130x64xf32>
  %m = stablehlo.compare GE, %m0, %m1 : (tensor<130x64xf32>, tensor<130x64xf32>) -> tensor<130x64xi1>
  %mask = stablehlo.broadcast_in_dim %m, dims = [1, 2] : (tensor<130x64xi1>) -> tensor<3x130x64xi1>
  %never = stablehlo.constant dense<-1.0e9> : tensor<3x130x64xf32>
  %sel = stablehlo.select %mask, %jc, %never : tensor<3x130x64xi1>, tensor<3x130x64xf32>
  %mx = stablehlo.reduce(%sel init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<3x130x64xf32>, tensor<f32>) -> tensor<3x130xf32>
  %mxw = stablehlo.broadcast_in_dim %mx, dims = [0, 1] : (tensor<3x130xf32>) -> tensor<3x130x64xf32>
  %sh = stablehlo.subtract %sel, %mxw : tensor<3x130x64xf32>
  %ex = stablehlo.exponential %sh : tensor<3x130x64xf32>
  %es = stablehlo.reduce(%ex init: %z) applies stablehlo.add across dimensions = [2] : (tensor<3x130x64xf32>, tensor<f32>) -> tensor<3x130xf32>
  %esw = stablehlo.broadcast_in_dim %es, dims = [0, 1] : (tensor<3x130xf32>) -> tensor<3x130x64xf32>
  %r1 = stablehlo.divide %ex, %esw : tensor<3x130x64xf32>
  // long rows
  %l = stablehlo.iota dim = 1 : tensor<40x9001xf32>
  %lc = stablehlo.sine %l : tensor<40x9001xf32>
  %l0 = stablehlo.iota dim = 0 : tensor<40x9001xf32>
  %lp = stablehlo.multiply %lc, %l0 : tensor<40x9001xf32>
  %lt = stablehlo.tanh %lp : tensor<40x9001xf32>
  %lm = stablehlo.reduce(%lt init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<40x9001xf32>, tensor<f32>) -> tensor<40xf32>
  %lmw = stablehlo.broadcast_in_dim %lm, dims = [0] : (tensor<40xf32>) -> tensor<40x9001xf32>
  %ls = stablehlo.subtract %lt, %lmw : tensor<40x9001xf32>
  %le = stablehlo.exponential %ls : tensor<40x9001xf32>
  %lsum = stablehlo.reduce(%le init: %z) applies stablehlo.add across dimensions = [1] : (tensor<40x9001xf32>, tensor<f32>) -> tensor<40xf32>
  %r3 = stablehlo.log %lsum : tensor<40xf32>
  %lw = stablehlo.broadcast_in_dim %lsum, dims = [0] : (tensor<40xf32>) -> tensor<40x9001xf32>
  %q1 = stablehlo.divide %le, %lw : tensor<40x9001xf32>
  %q2 = stablehlo.multiply %lp, %q1 : tensor<40x9001xf32>
  %q3 = stablehlo.add %lt, %q2 : tensor<40x9001xf32>
  %q4 = stablehlo.multiply %q3, %le : tensor<40x9001xf32>
  %r2 = stablehlo.add %q4, %lc : tensor<40x9001xf32>
  // long rows times one number each: several chunks, no reduction
  %t1 = stablehlo.optimization_barrier %r3 : tensor<40xf32>
  %t2 = stablehlo.add %t1, %lm : tensor<40xf32>
  %t3 = stablehlo.broadcast_in_dim %t2, dims = [0] : (tensor<40xf32>) -> tensor<40x9001xf32>
  %t4 = stablehlo.optimization_barrier %q3 : tensor<40x9001xf32>
  %t5 = stablehlo.multiply %t3, %t4 : tensor<40x9001xf32>
  %r6 = stablehlo.add %t5, %lc : tensor<40x9001xf32>
  // short rows
  %h = stablehlo.iota dim = 0 : tensor<18000xf32>
  %hs = stablehlo.sine %h : tensor<18000xf32>
  %hr = stablehlo.reshape %hs : (tensor<18000xf32>) -> tensor<3000x6xf32>
  %hm = stablehlo.reduce(%hr init: %z) applies stablehlo.add across dimensions = [1] : (tensor<3000x6xf32>, tensor<f32>) -> tensor<3000xf32>
  %ha = stablehlo.abs %hm : tensor<3000xf32>
  %hw = stablehlo.broadcast_in_dim %ha, dims = [0] : (tensor<3000xf32>) -> tensor<3000x6xf32>
  %r4 = stablehlo.multiply %hr, %hw : tensor<3000x6xf32>
  // flat, one element more than a multiple of 128
  %f = stablehlo.iota dim = 0 : tensor<8193xf32>
  %fs = stablehlo.sine %f : tensor<8193xf32>
  %half = stablehlo.constant dense<0.5> : tensor<8193xf32>
  %f1 = stablehlo.multiply %fs, %half : tensor<8193xf32>
  %f2 = stablehlo.add %f1, %f : tensor<8193xf32>
  %f3 = stablehlo.sqrt %f2 : tensor<8193xf32>
  %r5 = stablehlo.subtract %half, %f3 : tensor<8193xf32>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6 : tensor<2x150x96xf32>, tensor<3x130x64xf32>, tensor<40x9001xf32>, tensor<40xf32>, tensor<3000x6xf32>, tensor<8193xf32>, tensor<40x9001xf32>
}
