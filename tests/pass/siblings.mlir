// Small kernels that do not need each other's results are one: updates of short vectors (nobody reads them before the end, however
// far apart), conversions of arguments, sums over the same dimension.
// run: otrn compile %s --cache=off -o %t/a.otrn && otrn dis %t/a.otrn | grep '^.kernel' | cut -d' ' -f3 | sort | uniq -c | sed 's/^ *//'
// expect: 2 otrn.fused
// expect: 1 stablehlo.reduce
// run: otrn compile %s --cache=off --disable-pass=fuse -o %t/b.otrn && otrn dis %t/b.otrn | grep '^.kernel' | cut -d' ' -f3 | sort | uniq -c | sed 's/^ *//'
// expect: 2 stablehlo.convert
// expect: 2 stablehlo.multiply
// expect: 2 stablehlo.reduce
func.func public @main(%a: tensor<6x40xf32>, %b: tensor<6x40xf32>, %m: tensor<40xf32>, %v: tensor<40xf32>, %p: tensor<60xbf16>, %q: tensor<60xbf16>) -> (tensor<40xf32>, tensor<40xf32>, tensor<60xf32>, tensor<60xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %half = stablehlo.constant dense<0.5> : tensor<40xf32>
  %pf = stablehlo.convert %p : (tensor<60xbf16>) -> tensor<60xf32>
  %s = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<6x40xf32>, tensor<f32>) -> tensor<40xf32>
  %t = stablehlo.reduce(%b init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<6x40xf32>, tensor<f32>) -> tensor<40xf32>
  %qf = stablehlo.convert %q : (tensor<60xbf16>) -> tensor<60xf32>
  %0 = stablehlo.multiply %m, %half : tensor<40xf32>
  %1 = stablehlo.add %0, %s : tensor<40xf32>
  %2 = stablehlo.multiply %v, %v : tensor<40xf32>
  %3 = stablehlo.subtract %2, %t : tensor<40xf32>
  return %1, %3, %pf, %qf : tensor<40xf32>, tensor<40xf32>, tensor<60xf32>, tensor<60xf32>
}
