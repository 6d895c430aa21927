// case with an index in range, past the end and negative (both take the last branch); if; branches that
// read outer values and return them as they are.
// run: otrn eval %s
// run: otrn run %s
func.func private @pick(%i: tensor<i32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = "stablehlo.case"(%i) ({
    %a = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %a, %x : tensor<4xf32>, tensor<4xf32>
  }, {
    %a = stablehlo.add %x, %x : tensor<4xf32>
    %b = stablehlo.add %a, %x : tensor<4xf32>
    stablehlo.return %a, %b : tensor<4xf32>, tensor<4xf32>
  }, {
    stablehlo.return %x, %x : tensor<4xf32>, tensor<4xf32>
  }) : (tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}
func.func public @main() {
  %x = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %neg = stablehlo.constant dense<[-1.0, -2.0, -3.0, -4.0]> : tensor<4xf32>
  %two = stablehlo.constant dense<[2.0, 4.0, 6.0, 8.0]> : tensor<4xf32>
  %three = stablehlo.constant dense<[3.0, 6.0, 9.0, 12.0]> : tensor<4xf32>
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %i1 = stablehlo.constant dense<1> : tensor<i32>
  %i7 = stablehlo.constant dense<7> : tensor<i32>
  %im = stablehlo.constant dense<-1> : tensor<i32>
  %a:2 = func.call @pick(%i0, %x) : (tensor<i32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %b:2 = func.call @pick(%i1, %x) : (tensor<i32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %c:2 = func.call @pick(%i7, %x) : (tensor<i32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %d:2 = func.call @pick(%im, %x) : (tensor<i32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  stablehlo.custom_call @check.expect_eq(%a#0, %neg) {has_side_effect = true} : (tensor<4xf32>, tensor<4xf32>) -> ()
  stablehlo.custom_call @check.expect_eq(%a#1, %x) {has_side_effect = true} : (tensor<4xf32>, tensor<4xf32>) -> ()
  stablehlo.custom_call @check.expect_eq(%b#0, %two) {has_side_effect = true} : (tensor<4xf32>, tensor<4xf32>) -> ()
  stablehlo.custom_call @check.expect_eq(%b#1, %three) {has_side_effect = true} : (tensor<4xf32>, tensor<4xf32>) -> ()
  stablehlo.custom_call @check.expect_eq(%c#0, %x) {has_side_effect = true} : (tensor<4xf32>, tensor<4xf32>) -> ()
  stablehlo.custom_call @check.expect_eq(%d#1, %x) {has_side_effect = true} : (tensor<4xf32>, tensor<4xf32>) -> ()
  %t = stablehlo.compare EQ, %i0, %i0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %e = "stablehlo.if"(%t) ({
    stablehlo.return %two : tensor<4xf32>
  }, {
    stablehlo.return %neg : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  stablehlo.custom_call @check.expect_eq(%e, %two) {has_side_effect = true} : (tensor<4xf32>, tensor<4xf32>) -> ()
  return
}
