// Regions that use values from outside and regions that do not, one inside the other.
// run: otrn compile %s --emit=mlirbc -o %t/1.mlirbc
// run: otrn compile %t/1.mlirbc --emit=mlir --locs -o %t/2.mlir
// run: otrn compile %t/2.mlir --emit=mlirbc -o %t/3.mlirbc
// run: cmp %t/1.mlirbc %t/3.mlirbc && otrn eval %t/1.mlirbc
// status: 0
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %yes = stablehlo.constant dense<true> : tensor<i1>
  %x = stablehlo.constant dense<[3, 1, 2]> : tensor<3xi32>
  %sum:2 = "stablehlo.while"(%zero, %zero) ({
  ^bb0(%i: tensor<i32>, %s: tensor<i32>):
    %less = "stablehlo.compare"(%i, %ten) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<i32>):
    %next = stablehlo.add %i, %one : tensor<i32>
    %more = "stablehlo.if"(%yes) ({
      %inner = "stablehlo.case"(%zero) ({
        %t = stablehlo.add %s, %next : tensor<i32>
        stablehlo.return %t : tensor<i32>
      }, {
        stablehlo.return %one : tensor<i32>
      }) : (tensor<i32>) -> tensor<i32>
      stablehlo.return %inner : tensor<i32>
    }, {
      stablehlo.return %s : tensor<i32>
    }) : (tensor<i1>) -> tensor<i32>
    stablehlo.return %next, %more : tensor<i32>, tensor<i32>
  }) : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
  %sorted = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = "stablehlo.compare"(%a, %b) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) {dimension = 0 : i64, is_stable = true} : (tensor<3xi32>) -> tensor<3xi32>
  "check.expect_eq_const"(%sum#1) {value = dense<55> : tensor<i32>} : (tensor<i32>) -> ()
  "check.expect_eq_const"(%sorted) {value = dense<[1, 2, 3]> : tensor<3xi32>} : (tensor<3xi32>) -> ()
  return
}
