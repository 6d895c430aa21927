// A failing program shrinks to the op that matters: here whatever has a tanh in it "fails".
// run: otrn reduce %s --test='grep -q stablehlo.tanh %%s' -o %t/small.mlir
// run: otrn eval %t/small.mlir; cat %t/small.mlir
// expect: 10 ops
// expect: -> 1 ops
// expect: module @m {
// expect: func.func public @main() -> (tensor<4x4xf32>) {
// expect: %0 = stablehlo.constant dense<0.000000e+00> : tensor<4x4xf32>
// expect: %1 = stablehlo.tanh %0 : tensor<4x4xf32>
// expect: func.return %1 : tensor<4x4xf32>
// expect-not: exponential
module @m attributes {foo.x = 1 : i32} {
  func.func public @main(%x: tensor<4x4xf32> {jax.arg_info = "x"}, %y: tensor<4x4xf32>) -> (tensor<4x4xf32> {jax.result_info = "a"}, tensor<4x4xf32>, tensor<f32>) {
    %c = stablehlo.constant dense<[[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]]> : tensor<4x4xf32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %p = stablehlo.constant dense<true> : tensor<i1>
    %0 = stablehlo.exponential %x : tensor<4x4xf32>
    %1 = call @f(%0, %y) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = stablehlo.add %1, %c : tensor<4x4xf32>
    %3 = "stablehlo.if"(%p) ({
      %5 = stablehlo.sine %2 : tensor<4x4xf32>
      stablehlo.return %5 : tensor<4x4xf32>
    }, {
      stablehlo.return %0 : tensor<4x4xf32>
    }) : (tensor<i1>) -> tensor<4x4xf32>
    %4 = stablehlo.reduce(%3 init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
    %dead = stablehlo.cosine %x : tensor<4x4xf32>
    return %2, %3, %4 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>
  }
  func.func private @f(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = stablehlo.multiply %a, %b : tensor<4x4xf32>
    %1 = stablehlo.tanh %0 : tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
}
