// Regions: while, the three forms of reduce, captures of outer values, and argument order in reducers.
// run: otrn eval %s
// run: otrn compile %s --dump=read -o %t/out.otrn >%t/a.mlir
// run: otrn compile %t/a.mlir --dump=read -o %t/out.otrn >%t/b.mlir
// run: cmp %t/a.mlir %t/b.mlir && otrn eval %t/b.mlir && cat %t/a.mlir
// expect: "stablehlo.while"
// expect: {some.note = "kept"}
func.func public @main() {
  %x = stablehlo.constant dense<[[1, 5, 2], [7, 3, 7]]> : tensor<2x3xi32>
  %i = stablehlo.iota dim = 1 : tensor<2x3xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %low = stablehlo.constant dense<-100> : tensor<i32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
  check.expect_eq_const %sum, dense<[8, 17]> : tensor<2xi32>
  %max:2 = stablehlo.reduce(%x init: %low), (%i init: %zero) across dimensions = [1] : (tensor<2x3xi32>, tensor<2x3xi32>, tensor<i32>, tensor<i32>) -> (tensor<2xi32>, tensor<2xi32>)
   reducer(%a: tensor<i32>, %acc: tensor<i32>) (%ai: tensor<i32>, %acci: tensor<i32>)  {
    %gt = stablehlo.compare  GT, %a, %acc,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %v = stablehlo.select %gt, %a, %acc : tensor<i1>, tensor<i32>
    %w = stablehlo.select %gt, %ai, %acci : tensor<i1>, tensor<i32>
    stablehlo.return %v, %w : tensor<i32>, tensor<i32>
  }
  check.expect_eq_const %max#0, dense<[5, 7]> : tensor<2xi32>
  %all = "stablehlo.reduce"(%x, %zero) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%l: tensor<i32>, %r: tensor<i32>):
    %s = stablehlo.add %l, %r : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<2x3xi32>, tensor<i32>) -> tensor<i32>
  check.expect_eq_const %all, dense<25> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %loop:2 = stablehlo.while(%n = %zero, %f = %one) : tensor<i32>, tensor<i32> attributes {some.note = "kept"}
   cond {
    %c = stablehlo.compare  LT, %n, %ten,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %m = stablehlo.add %n, %one : tensor<i32>
    %g = stablehlo.add %f, %f : tensor<i32>
    stablehlo.return %m, %g : tensor<i32>, tensor<i32>
  }
  check.expect_eq_const %loop#1, dense<1024> : tensor<i32>
  return
}
