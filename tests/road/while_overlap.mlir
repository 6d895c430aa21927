// Iterations of a counted loop run into each other: one barrier before the loop, none in it, and waits that count back, so that they
// suit every iteration. --check finds an access that no wait orders. Each iteration reads the state that the one before wrote and a
// row block of its own, and writes its own part of a stack. Small whole numbers: exact.
// run: otrn run %s --cache=off --lnc=1
// run: otrn run %s --cache=off --lnc=1 --plan=off --check
// run: otrn run %s --cache=off --lnc=1 --target=trn1 --check
// run: otrn run %s --cache=off --lnc=2 --check
// run: otrn compile %s --cache=off --lnc=1 --dump=tile -o %t/a.otrn | sed -n '/ loop /,/endloop/p' | grep -c barrier || true
// run: otrn compile %s --cache=off --lnc=1 --dump=tile -o %t/a.otrn | sed -n '/ loop /,/endloop/p' | grep -m1 -o 'wait(q[0-9]*-[0-9]*'
// expect: 0
// expect: wait(q
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %w0 = stablehlo.iota dim = 1 : tensor<5x256x256xi32>
  %w1 = stablehlo.iota dim = 2 : tensor<5x256x256xi32>
  %w3 = stablehlo.compare EQ, %w0, %w1 : (tensor<5x256x256xi32>, tensor<5x256x256xi32>) -> tensor<5x256x256xi1>
  %w4 = stablehlo.convert %w3 : (tensor<5x256x256xi1>) -> tensor<5x256x256xf32>
  %x0 = stablehlo.iota dim = 1 : tensor<512x256xi32>
  %seven = stablehlo.constant dense<7> : tensor<512x256xi32>
  %x1 = stablehlo.remainder %x0, %seven : tensor<512x256xi32>
  %x = stablehlo.convert %x1 : (tensor<512x256xi32>) -> tensor<512x256xf32>
  %stack0 = stablehlo.constant dense<0.0> : tensor<5x512x256xf32>
  %onef = stablehlo.constant dense<1.0> : tensor<512x256xf32>
  %r:3 = stablehlo.while(%i = %zero, %s = %x, %st = %stack0) : tensor<i32>, tensor<512x256xf32>, tensor<5x512x256xf32>
  cond {
    %c = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %w5 = stablehlo.dynamic_slice %w4, %i, %zero, %zero, sizes = [1, 256, 256] : (tensor<5x256x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x256x256xf32>
    %w6 = stablehlo.reshape %w5 : (tensor<1x256x256xf32>) -> tensor<256x256xf32>
    %p = stablehlo.dot_general %s, %w6, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x256xf32>) -> tensor<512x256xf32>
    %q = stablehlo.add %p, %onef : tensor<512x256xf32>
    %q1 = stablehlo.reshape %q : (tensor<512x256xf32>) -> tensor<1x512x256xf32>
    %u = stablehlo.dynamic_update_slice %st, %q1, %i, %zero, %zero : (tensor<5x512x256xf32>, tensor<1x512x256xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x512x256xf32>
    %n = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %n, %q, %u : tensor<i32>, tensor<512x256xf32>, tensor<5x512x256xf32>
  }
  %b = stablehlo.iota dim = 0 : tensor<5x512x256xi32>
  %k0 = stablehlo.iota dim = 2 : tensor<5x512x256xi32>
  %k7 = stablehlo.constant dense<7> : tensor<5x512x256xi32>
  %k1 = stablehlo.constant dense<1> : tensor<5x512x256xi32>
  %k2 = stablehlo.remainder %k0, %k7 : tensor<5x512x256xi32>
  %k3 = stablehlo.add %k2, %b : tensor<5x512x256xi32>
  %k4 = stablehlo.add %k3, %k1 : tensor<5x512x256xi32>
  %want = stablehlo.convert %k4 : (tensor<5x512x256xi32>) -> tensor<5x512x256xf32>
  "check.expect_eq"(%r#2, %want) : (tensor<5x512x256xf32>, tensor<5x512x256xf32>) -> ()
  return
}
