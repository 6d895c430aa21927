// A running sum of few elements stays a window, which a scan takes: no pad around it, no tap for each element before.
// run: otrn compile %s --dump=windows
// expect-not: stablehlo.pad
// run: otrn run %s
// expect: result 0: tensor<2x8xf32>: 1 3 6 10 15 21 28 36
func.func @main() -> tensor<2x8xf32> {
  %x = stablehlo.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]> : tensor<2x8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = "stablehlo.reduce_window"(%x, %zero) <{padding = dense<[[0, 0], [7, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 8>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}
