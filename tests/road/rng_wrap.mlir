// Integers from 0 to -1: the difference wraps, all numbers but -1 may come. TensorFlow's shuffle draws its keys so.
// run: otrn run %s
// run: otrn eval %s
// expect: result 0: tensor<6xi32>: 1728535157 309773643 365692473 -752255570 -1271872637 -1259712198
// expect: result 0: tensor<6xi32>: 1728535157 309773643 365692473 -752255570 -1271872637 -1259712198
func.func @main() -> tensor<6xi32> {
  %a = stablehlo.constant dense<0> : tensor<i32>
  %b = stablehlo.constant dense<-1> : tensor<i32>
  %s = stablehlo.constant dense<6> : tensor<1xi64>
  %r = "stablehlo.rng"(%a, %b, %s) {rng_distribution = #stablehlo<rng_distribution UNIFORM>} : (tensor<i32>, tensor<i32>, tensor<1xi64>) -> tensor<6xi32>
  return %r : tensor<6xi32>
}
