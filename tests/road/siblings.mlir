// Two small sums that do not need each other's results are one kernel; who reads them stays behind.
// run: otrn eval %s
// run: otrn run %s --cache=off --check
// run: otrn run %s --cache=off --disable-pass=fuse
// run: otrn run %s --cache=off --target=trn1 --threads=2
// run: otrn compile %s --cache=off -o %t/a.otrn && otrn dis %t/a.otrn | grep -c '^.kernel [0-9]* stablehlo.reduce'
// expect: 1
// run: otrn compile %s --cache=off --disable-pass=fuse -o %t/b.otrn && otrn dis %t/b.otrn | grep -c '^.kernel [0-9]* stablehlo.reduce'
// expect: 2
func.func @work(%a: tensor<6x40xf32>, %b: tensor<6x40xf32>, %m: tensor<40xf32>, %v: tensor<40xf32>) -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %half = stablehlo.constant dense<0.5> : tensor<40xf32>
  %s = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<6x40xf32>, tensor<f32>) -> tensor<40xf32>
  %t = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<6x40xf32>, tensor<f32>) -> tensor<40xf32>
  %0 = stablehlo.multiply %m, %half : tensor<40xf32>
  %1 = stablehlo.add %0, %s : tensor<40xf32>
  %2 = stablehlo.multiply %v, %v : tensor<40xf32>
  %3 = stablehlo.subtract %2, %t : tensor<40xf32>
  %4 = stablehlo.reshape %1 : (tensor<40xf32>) -> tensor<2x20xf32>
  %5 = stablehlo.reshape %3 : (tensor<40xf32>) -> tensor<2x20xf32>
  %6 = stablehlo.multiply %4, %5 : tensor<2x20xf32>
  %7 = stablehlo.subtract %6, %4 : tensor<2x20xf32>
  %8 = stablehlo.reshape %7 : (tensor<2x20xf32>) -> tensor<40xf32>
  return %1, %3, %8 : tensor<40xf32>, tensor<40xf32>, tensor<40xf32>
}
func.func public @main() {
  %i = stablehlo.iota dim = 0 : tensor<240xf32>
  %eighth = stablehlo.constant dense<0.125> : tensor<240xf32>
  %x = stablehlo.multiply %i, %eighth : tensor<240xf32>
  %a = stablehlo.reshape %x : (tensor<240xf32>) -> tensor<6x40xf32>
  %m = stablehlo.slice %x [0:40] : (tensor<240xf32>) -> tensor<40xf32>
  %v = stablehlo.slice %x [100:140] : (tensor<240xf32>) -> tensor<40xf32>
  %b = stablehlo.negate %a : tensor<6x40xf32>
  %r:3 = func.call @work(%a, %b, %m, %v) : (tensor<6x40xf32>, tensor<6x40xf32>, tensor<40xf32>, tensor<40xf32>) -> (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>)
  %first = stablehlo.slice %r#0 [0:1] : (tensor<40xf32>) -> tensor<1xf32>
  %second = stablehlo.slice %r#1 [0:1] : (tensor<40xf32>) -> tensor<1xf32>
  %third = stablehlo.slice %r#2 [0:1] : (tensor<40xf32>) -> tensor<1xf32>
  %e1 = stablehlo.constant dense<75.0> : tensor<1xf32>
  %e2 = stablehlo.constant dense<231.25> : tensor<1xf32>
  %e3 = stablehlo.constant dense<17268.75> : tensor<1xf32>
  check.expect_eq %first, %e1 : tensor<1xf32>
  check.expect_eq %second, %e2 : tensor<1xf32>
  check.expect_eq %third, %e3 : tensor<1xf32>
  return
}
