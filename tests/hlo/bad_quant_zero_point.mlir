// run: otrn eval %s
// status: 1
// expect: error[VERIFY]: !quant.uniform<i8<-7:7>:f32, 5.000000e-01:9>: a zero point lies outside the storage range
func.func public @main(%x: tensor<2x!quant.uniform<i8<-7:7>:f32, 0.5:9>>) {
  return
}
