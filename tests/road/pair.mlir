// Split over the two cores of a logical core: the same bits, less time, meetings where one needs the other's work.
// run: otrn run %s --lnc=1 | tee %t/one; otrn run %s --lnc=auto | cmp - %t/one && echo same bits
// expect: same bits
// run: otrn run %s --lnc=2 --check | cmp - %t/one && echo watched
// expect: watched
// run: otrn compile %s --lnc=2 -o %t/two.otrn; otrn compile %s --lnc=1 -o %t/one.otrn; otrn dis %t/two.otrn | grep -m1 -o core_barrier
// expect: core_barrier
// run: otrn dis %t/two.otrn >%t/two.s; otrn as %t/two.s -o %t/again.otrn; otrn dis %t/again.otrn | cmp - %t/two.s && echo same text
// expect: same text
// run: otrn check %t/two.otrn
// expect: semaphores order all engines
// run: sed 's/core_barrier imm=0/nop/' %t/two.s >%t/apart.s; otrn check %t/apart.s; test $? = 1
// expect: race: instruction
// expect: and no meeting orders them
// run: otrn prof --diff %t/one.otrn %t/two.otrn | grep verdict
// expect: verdict: B is
// expect: % faster than A
// run: otrn run %s --lnc=2 --target=trn1; test $? = 2
// expect: trn1 has no logical cores of two
func.func @main() -> (tensor<8xf32>, tensor<f32>, tensor<i32>) {
  %i = stablehlo.iota dim = 0 : tensor<512x512xf32>
  %j = stablehlo.iota dim = 1 : tensor<512x512xf32>
  %s = stablehlo.constant dense<1.0e-3> : tensor<512x512xf32>
  %a0 = stablehlo.multiply %i, %s : tensor<512x512xf32>
  %b0 = stablehlo.multiply %j, %s : tensor<512x512xf32>
  %a = stablehlo.sine %a0 : tensor<512x512xf32>
  %b = stablehlo.cosine %b0 : tensor<512x512xf32>
  // two independent chains of products, then their sum
  %p0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %p1 = stablehlo.tanh %p0 : tensor<512x512xf32>
  %p2 = stablehlo.dot_general %p1, %b, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %q0 = stablehlo.dot_general %b, %a, contracting_dims = [1] x [1] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %q1 = stablehlo.logistic %q0 : tensor<512x512xf32>
  %q2 = stablehlo.dot_general %q1, %a, contracting_dims = [1] x [0] : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  %r = stablehlo.add %p2, %q2 : tensor<512x512xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%r init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<512x512xf32>, tensor<f32>) -> tensor<512xf32>
  %head = stablehlo.slice %sum [0:8] : (tensor<512xf32>) -> tensor<8xf32>
  // a loop whose condition one core computes and both read
  %n0 = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %w:2 = stablehlo.while(%k = %n0, %x = %zero) : tensor<i32>, tensor<f32>
   cond {
    %c = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %k1 = stablehlo.add %k, %one : tensor<i32>
    %t = stablehlo.reduce(%head init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    %x1 = stablehlo.add %x, %t : tensor<f32>
    stablehlo.return %k1, %x1 : tensor<i32>, tensor<f32>
  }
  return %head, %w#1, %w#0 : tensor<8xf32>, tensor<f32>, tensor<i32>
}
