// A loop whose body permutes its carried values: the copies at its end must not overwrite what another
// copy still reads.
// run: otrn eval %s
// run: otrn run %s
func.func public @main() {
  %a = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %b = stablehlo.constant dense<[10.0, 20.0, 30.0]> : tensor<3xf32>
  %c = stablehlo.constant dense<[100.0, 200.0, 300.0]> : tensor<3xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:4 = stablehlo.while(%i = %zero, %x = %a, %y = %b, %z = %c) : tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
   cond {
    %n = stablehlo.constant dense<5> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %y, %z, %x : tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  }
  stablehlo.custom_call @check.expect_eq(%r#1, %c) {has_side_effect = true} : (tensor<3xf32>, tensor<3xf32>) -> ()
  stablehlo.custom_call @check.expect_eq(%r#2, %a) {has_side_effect = true} : (tensor<3xf32>, tensor<3xf32>) -> ()
  stablehlo.custom_call @check.expect_eq(%r#3, %b) {has_side_effect = true} : (tensor<3xf32>, tensor<3xf32>) -> ()
  %five = stablehlo.constant dense<5> : tensor<i32>
  stablehlo.custom_call @check.expect_eq(%r#0, %five) {has_side_effect = true} : (tensor<i32>, tensor<i32>) -> ()
  return
}
