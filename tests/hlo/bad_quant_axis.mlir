// run: otrn eval %s
// status: 1
// expect: error[VERIFY]: !quant.uniform<i8:f32:1, {
// expect: one scale for each index along the quantised dimension
func.func public @main(%x: tensor<2x3x!quant.uniform<i8:f32:1, {0.5, 0.25}>>) {
  return
}
