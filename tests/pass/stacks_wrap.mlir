// An index that wraps on its way does not go over the stack: pieces 2 and 3 are written to place 0. Work behind the loop stays there.
// run: mkdir %t/eval %t/chip; otrn eval %s --output=%t/eval; otrn run %s --output=%t/chip
// run: cmp %t/eval/result_0.npy %t/chip/result_0.npy
// run: otrn compile %s --dump=stacks
// expect: :2 = "stablehlo.while"
func.func public @main() -> tensor<4x64x512xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %empty = stablehlo.constant dense<0.0> : tensor<4x64x512xf32>
  %l:2 = stablehlo.while(%i = %zero, %g = %empty) : tensor<i32>, tensor<4x64x512xf32>
   cond {
    %n = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %far = stablehlo.constant dense<126> : tensor<i8>
    %far32 = stablehlo.constant dense<126> : tensor<i32>
    %i8 = stablehlo.convert %i : (tensor<i32>) -> tensor<i8>
    %moved = stablehlo.add %i8, %far : tensor<i8>
    %moved32 = stablehlo.convert %moved : (tensor<i8>) -> tensor<i32>
    %at = stablehlo.subtract %moved32, %far32 : tensor<i32>
    %f = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
    %gi = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<1x64x512xf32>
    %e = stablehlo.exponential %gi : tensor<1x64x512xf32>
    %gs = stablehlo.dynamic_update_slice %g, %e, %at, %z, %z : (tensor<4x64x512xf32>, tensor<1x64x512xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x64x512xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %gs : tensor<i32>, tensor<4x64x512xf32>
  }
  %a = stablehlo.constant dense<2.0> : tensor<4x64x512xf32>
  %ma = stablehlo.multiply %a, %l#1 : tensor<4x64x512xf32>
  %m1 = stablehlo.add %ma, %a : tensor<4x64x512xf32>
  return %m1 : tensor<4x64x512xf32>
}
