// The sign of large tensors is choices in a row program; zeros keep theirs, NaN stays.
// run: otrn eval %s
// run: otrn run %s --disable-pass=fold
// run: otrn compile %s --disable-pass=fold --dump=rows -o %t/out.otrn
// expect: otrn.rows
func.func public @main() {
  %i = stablehlo.iota dim = 0 : tensor<1024xf32>
  %c = stablehlo.constant dense<512.0> : tensor<1024xf32>
  %x = stablehlo.subtract %i, %c : tensor<1024xf32>
  %s = stablehlo.sign %x : tensor<1024xf32>
  %part = stablehlo.slice %s [510:515] : (tensor<1024xf32>) -> tensor<5xf32>
  check.expect_eq_const %part, dense<[-1.0, -1.0, 0.0, 1.0, 1.0]> : tensor<5xf32>
  %z = stablehlo.constant dense<-0.0> : tensor<1024xf32>
  %n = stablehlo.multiply %i, %z : tensor<1024xf32>
  %t = stablehlo.sign %n : tensor<1024xf32>
  %b = stablehlo.bitcast_convert %t : (tensor<1024xf32>) -> tensor<1024xui32>
  %first = stablehlo.slice %b [0:2] : (tensor<1024xui32>) -> tensor<2xui32>
  check.expect_eq_const %first, dense<2147483648> : tensor<2xui32>
  %nan = stablehlo.divide %n, %n : tensor<1024xf32>
  %u = stablehlo.sign %nan : tensor<1024xf32>
  %w = stablehlo.compare NE, %u, %u : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xi1>
  %all = stablehlo.constant dense<true> : tensor<1024xi1>
  check.expect_eq %w, %all : tensor<1024xi1>
  return
}
