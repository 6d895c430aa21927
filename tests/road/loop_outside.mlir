// A counter that leaves the places of an update, or of a slice, is moved in by whoever holds it in a register: it is loaded from memory.
// run: otrn eval %s && otrn run %s && otrn run %s --lnc=2
// expect-not: FAIL
func.func @main() {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %o = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<4> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<32x7x32x7xf32>
  %part = stablehlo.constant dense<1.0> : tensor<31x7x17x7xf32>
  %none = stablehlo.constant dense<0.0> : tensor<31x7x17x7xf32>
  %r:3 = stablehlo.while(%i = %z, %x = %zero, %y = %none) : tensor<i32>, tensor<32x7x32x7xf32>, tensor<31x7x17x7xf32>
    cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1> }
    do { %j = stablehlo.add %i, %o : tensor<i32>
      %u = stablehlo.dynamic_update_slice %x, %part, %i, %z, %i, %z : (tensor<32x7x32x7xf32>, tensor<31x7x17x7xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<32x7x32x7xf32>
      %s = stablehlo.dynamic_slice %u, %j, %z, %i, %z, sizes = [31, 7, 17, 7] : (tensor<32x7x32x7xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<31x7x17x7xf32>
      %w = stablehlo.add %y, %s : tensor<31x7x17x7xf32>
      stablehlo.return %j, %u, %w : tensor<i32>, tensor<32x7x32x7xf32>, tensor<31x7x17x7xf32> }
  %f = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%r#1 init: %f) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<32x7x32x7xf32>, tensor<f32>) -> tensor<f32>
  %cols = stablehlo.reduce(%r#2 init: %f) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<31x7x17x7xf32>, tensor<f32>) -> tensor<f32>
  check.expect_eq_const %sum, dense<31164.0> : tensor<f32>
  check.expect_eq_const %cols, dense<102459.0> : tensor<f32>
  return
}
