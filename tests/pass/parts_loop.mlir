// A loop stacks up complex pieces: nobody takes the stack apart and puts it together again in every iteration.
// run: otrn eval %s
// run: otrn run %s --check
// run: otrn run %s --disable-pass=parts
// run: echo parts $(otrn compile %s --dump=parts -o %t/out.otrn | grep -e 'stablehlo.real' -e 'stablehlo.imag' | grep -c 8x64x32xcomplex)
// expect: parts 0
func.func public @main() {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %row = stablehlo.iota dim = 0 : tensor<64x32xf32>
  %col = stablehlo.iota dim = 1 : tensor<64x32xf32>
  %u = stablehlo.complex %row, %col : tensor<64x32xcomplex<f32>>
  %empty = stablehlo.constant dense<(0.0, 0.0)> : tensor<8x64x32xcomplex<f32>>
  %f:3 = stablehlo.while(%i = %zero, %x = %u, %s = %empty) : tensor<i32>, tensor<64x32xcomplex<f32>>, tensor<8x64x32xcomplex<f32>>
   cond {
    %n = stablehlo.constant dense<8> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %piece = stablehlo.reshape %x : (tensor<64x32xcomplex<f32>>) -> tensor<1x64x32xcomplex<f32>>
    %s1 = stablehlo.dynamic_update_slice %s, %piece, %i, %zero, %zero : (tensor<8x64x32xcomplex<f32>>, tensor<1x64x32xcomplex<f32>>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x64x32xcomplex<f32>>
    %next = stablehlo.add %x, %u : tensor<64x32xcomplex<f32>>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %next, %s1 : tensor<i32>, tensor<64x32xcomplex<f32>>, tensor<8x64x32xcomplex<f32>>
  }
  %last = stablehlo.slice %f#2 [7:8, 0:64, 0:32] : (tensor<8x64x32xcomplex<f32>>) -> tensor<1x64x32xcomplex<f32>>
  %im = stablehlo.imag %last : (tensor<1x64x32xcomplex<f32>>) -> tensor<1x64x32xf32>
  %eight = stablehlo.constant dense<8.0> : tensor<64x32xf32>
  %w = stablehlo.multiply %col, %eight : tensor<64x32xf32>
  %w1 = stablehlo.reshape %w : (tensor<64x32xf32>) -> tensor<1x64x32xf32>
  %d = stablehlo.subtract %im, %w1 : tensor<1x64x32xf32>
  check.expect_eq_const %d, dense<0.0> : tensor<1x64x32xf32>
  return
}
