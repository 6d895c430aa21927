// A region that takes elements of another scale than its operand has is refused, not misread.
// run: otrn eval %s
// status: 1
// expect: error[UNSUPPORTED]: stablehlo.reduce: argument 0 of its region is quantised in another way
!q = !quant.uniform<i8:f32, 0.5:3>
!other = !quant.uniform<i8:f32, 0.25>
func.func public @main(%x: tensor<4x!q>, %p: tensor<!q>) -> tensor<!q> {
  %6 = stablehlo.reduce(%x init: %p) across dimensions = [0] : (tensor<4x!q>, tensor<!q>) -> tensor<!q>
   reducer(%a: tensor<!other>, %b: tensor<!other>) {
    %m = stablehlo.maximum %a, %b : tensor<!other>
    stablehlo.return %m : tensor<!other>
  }
  return %6 : tensor<!q>
}
