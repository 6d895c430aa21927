// Sizes through loops and branches: a carried value keeps its shape, one that the body hands on keeps its value
// too; a branch that is known to be taken gives its shape, the other may have another one.
// run: otrn eval %s
// run: otrn run %s
func.func public @main() {
  %c = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %three = stablehlo.constant dense<[3]> : tensor<1xi32>
  %x = stablehlo.dynamic_reshape %c, %three : (tensor<3xf32>, tensor<1xi32>) -> tensor<?xf32>
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %size = %n, %v = %x) : tensor<i32>, tensor<i32>, tensor<?xf32>
  cond {
    %go = stablehlo.compare LT, %i, %size : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %list = stablehlo.reshape %size : (tensor<i32>) -> tensor<1xi32>
    %d = stablehlo.dynamic_iota %list, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
    %w = stablehlo.add %v, %d : tensor<?xf32>
    stablehlo.return %next, %size, %w : tensor<i32>, tensor<i32>, tensor<?xf32>
  }
  %0 = stablehlo.reshape %r#2 : (tensor<?xf32>) -> tensor<3xf32>
  check.expect_eq_const %0, dense<[1.0, 5.0, 9.0]> : tensor<3xf32>

  %odd = stablehlo.constant dense<1> : tensor<i32>
  %is = stablehlo.compare EQ, %n, %odd : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %1 = "stablehlo.if"(%is) ({
    stablehlo.return %x : tensor<?xf32>
  }, {
    %t = stablehlo.concatenate %x, %x, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    stablehlo.return %t : tensor<?xf32>
  }) : (tensor<i1>) -> tensor<?xf32>
  %2 = stablehlo.reshape %1 : (tensor<?xf32>) -> tensor<2x3xf32>
  check.expect_eq_const %2, dense<[[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]> : tensor<2x3xf32>

  // a choice made by data: both branches have one shape
  %first = stablehlo.slice %c [0:1] : (tensor<3xf32>) -> tensor<1xf32>
  %barrier = stablehlo.optimization_barrier %first : tensor<1xf32>
  %f = stablehlo.reshape %barrier : (tensor<1xf32>) -> tensor<f32>
  %pick = stablehlo.convert %f : (tensor<f32>) -> tensor<i32>
  %3 = "stablehlo.case"(%pick) ({
    stablehlo.return %x : tensor<?xf32>
  }, {
    %t = stablehlo.negate %x : tensor<?xf32>
    stablehlo.return %t : tensor<?xf32>
  }) : (tensor<i32>) -> tensor<?xf32>
  %4 = stablehlo.reshape %3 : (tensor<?xf32>) -> tensor<3xf32>
  check.expect_eq_const %4, dense<[-1.0, -2.0, -3.0]> : tensor<3xf32>
  return
}
