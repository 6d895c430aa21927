// A loop inside what a reduction computes: lanes that never leave it.
func.func @main() -> tensor<i32> {
  %x = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r = "stablehlo.reduce"(%x, %zero) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    %w = stablehlo.while(%i = %s) : tensor<i32>
      cond {
        %k = stablehlo.constant dense<-1> : tensor<i32>
        %c = stablehlo.compare GT, %i, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %seven = stablehlo.constant dense<7> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %n = stablehlo.add %i, %one : tensor<i32>
        %m = stablehlo.and %n, %seven : tensor<i32>
        stablehlo.return %m : tensor<i32>
      }
    stablehlo.return %w : tensor<i32>
  }) {dimensions = array<i64: 0>} : (tensor<4xi32>, tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>
}
