// log(1 + x) of few numbers is a kernel where they come from memory, and part of the row program that makes them, within a few units of the last place.
// run: otrn compile %s --cache=off -o %t/a.otrn --dump=functions > %t/text && grep -c log_plus_one %t/text
// expect: 1
// run: otrn run %s --check --cache=off
func.func @main() {
  %i = stablehlo.iota dim = 0 : tensor<1024xf32>
  %s = stablehlo.constant dense<-0.02> : tensor<1024xf32>
  %x = stablehlo.multiply %i, %s : tensor<1024xf32>
  %e = stablehlo.exponential %x : tensor<1024xf32>
  %l = stablehlo.log_plus_one %e : tensor<1024xf32>
  %b = stablehlo.slice %e [0:1000] : (tensor<1024xf32>) -> tensor<1000xf32>
  %k = stablehlo.log_plus_one %b : tensor<1000xf32>
  %f = stablehlo.slice %l [0:1000] : (tensor<1024xf32>) -> tensor<1000xf32>
  "check.expect_almost_eq"(%f, %k) {tolerance = 3.0e-7 : f64} : (tensor<1000xf32>, tensor<1000xf32>) -> ()
  return
}
