// A piece of what was converted with the others of its stack: it is made in the body, and its own pieces are converted there.
// run: otrn eval %s
// run: otrn run %s --check
// run: otrn compile %s --dump=pieces -o %t/out.otrn | grep -e 'stablehlo.convert' -e 'stablehlo.while'
// expect: (tensor<3x512xf32>) -> tensor<3x512xbf16>
// expect: stablehlo.while
// expect: (tensor<8xbf16>) -> tensor<8xf32>
func.func public @main() -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %bias = stablehlo.iota dim = 1 : tensor<3x512xf32>
  %x0 = stablehlo.constant dense<0.5> : tensor<8xf32>
  %f:2 = stablehlo.while(%i = %zero, %x = %x0) : tensor<i32>, tensor<8xf32>
   cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %bp = stablehlo.dynamic_slice %bias, %i, %z, sizes = [1, 512] : (tensor<3x512xf32>, tensor<i32>, tensor<i32>) -> tensor<1x512xf32>
    %b = stablehlo.reshape %bp : (tensor<1x512xf32>) -> tensor<512xf32>
    %bn = stablehlo.convert %b : (tensor<512xf32>) -> tensor<512xbf16>
    %cp = stablehlo.dynamic_slice %bn, %i, sizes = [8] : (tensor<512xbf16>, tensor<i32>) -> tensor<8xbf16>
    %c = stablehlo.convert %cp : (tensor<8xbf16>) -> tensor<8xf32>
    %y = stablehlo.add %x, %c : tensor<8xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %y : tensor<i32>, tensor<8xf32>
  }
  return %f#1 : tensor<8xf32>
}
