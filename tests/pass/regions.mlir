// Passes that put operations into another order, or side by side, do so in a loop's body too: two small kernels there become one. The
// loop's counter does not become part of one: the sequencers count.
// run: otrn eval %s
// run: otrn run %s
// run: otrn compile %s --dump=fuse
// expect: while
// expect: :2 = "otrn.fused"
// run: echo kernels $(otrn compile %s --lnc=1 --dump=nest | grep -c kernel)
// expect: kernels 4
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %x0 = stablehlo.iota dim = 0 : tensor<60xi32>
  %y0 = stablehlo.constant dense<3> : tensor<60xi32>
  %k0 = stablehlo.constant dense<1> : tensor<i32>
  %f:4 = stablehlo.while(%i = %zero, %x = %x0, %y = %y0, %k = %k0) : tensor<i32>, tensor<60xi32>, tensor<60xi32>, tensor<i32>
   cond {
    %n = stablehlo.constant dense<9> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %a = stablehlo.multiply %x, %y0 : tensor<60xi32>
    %b = stablehlo.add %a, %x0 : tensor<60xi32>
    %c = stablehlo.xor %y, %x0 : tensor<60xi32>
    %d = stablehlo.add %c, %c : tensor<60xi32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %k1 = stablehlo.multiply %k, %k : tensor<i32>
    %k2 = stablehlo.xor %k1, %k : tensor<i32>
    stablehlo.return %j, %b, %d, %k2 : tensor<i32>, tensor<60xi32>, tensor<60xi32>, tensor<i32>
  }
  %s = stablehlo.subtract %f#1, %f#2 : tensor<60xi32>
  %in = stablehlo.slice %s [2:3] : (tensor<60xi32>) -> tensor<1xi32>
  check.expect_eq_const %in, dense<58540> : tensor<1xi32>
  return
}
