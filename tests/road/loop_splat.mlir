// SPDX-License-Identifier: Apache-2.0
// run: otrn run %s
// expect: result 0: tensor<6xi32>: 1 1 1 1 1 1
// A number that is known in every turn, six times: not the number alone.
module {
  func.func public @main() -> (tensor<6xi32>) {
    %one = stablehlo.constant dense<1> : tensor<6xi32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r:2 = "stablehlo.while"(%zero, %one) ({
    ^bb0(%i: tensor<i32>, %x: tensor<6xi32>):
      %n = stablehlo.constant dense<1> : tensor<i32>
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }, {
    ^bb0(%i: tensor<i32>, %x: tensor<6xi32>):
      %n = stablehlo.constant dense<1> : tensor<i32>
      %most = stablehlo.constant dense<2147483647> : tensor<i32>
      %y = "stablehlo.reduce"(%one, %most) <{dimensions = array<i64>}> ({
      ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        %c = stablehlo.minimum %a, %b : tensor<i32>
        stablehlo.return %c : tensor<i32>
      }) : (tensor<6xi32>, tensor<i32>) -> tensor<6xi32>
      %j = stablehlo.add %i, %n : tensor<i32>
      stablehlo.return %j, %y : tensor<i32>, tensor<6xi32>
    }) : (tensor<i32>, tensor<6xi32>) -> (tensor<i32>, tensor<6xi32>)
    func.return %r#1 : tensor<6xi32>
  }
}
