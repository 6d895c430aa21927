// Rows go where each device says: XLA's own custom call, which JAX writes for lax.ragged_all_to_all. Against loops over senders, pieces and rows.
// run: otrn eval %s
// run: otrn run %s
// run: otrn run %s --plan=off --check --host=portable
module {
  func.func @partitions(%rows: tensor<6x2xf32>, %out: tensor<8x2xf32>, %start: tensor<4xi32>, %size: tensor<4xi32>, %place: tensor<4xi32>, %coming: tensor<4xi32>) -> tensor<8x2xf32> {
    %0 = stablehlo.custom_call @ragged_all_to_all(%rows, %out, %start, %size, %place, %coming) {api_version = 4 : i32, backend_config = {channel_id = 1 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}} : (tensor<6x2xf32>, tensor<8x2xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<8x2xf32>
    return %0 : tensor<8x2xf32>
  }
  func.func @main() {
    %partitionsa0 = stablehlo.constant dense<[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0], [8.0, 9.0], [10.0, 11.0]]> : tensor<6x2xf32>
    %partitionsb0 = stablehlo.constant dense<[[-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0]]> : tensor<8x2xf32>
    %partitionsc0 = stablehlo.constant dense<[0, 2, 4, 4]> : tensor<4xi32>
    %partitionsd0 = stablehlo.constant dense<[2, 2, 0, 2]> : tensor<4xi32>
    %partitionse0 = stablehlo.constant dense<[1, 1, 1, 1]> : tensor<4xi32>
    %partitionsf0 = stablehlo.constant dense<[2, 1, 2, 1]> : tensor<4xi32>
    %partitionsa1 = stablehlo.constant dense<[[12.0, 13.0], [14.0, 15.0], [16.0, 17.0], [18.0, 19.0], [20.0, 21.0], [22.0, 23.0]]> : tensor<6x2xf32>
    %partitionsb1 = stablehlo.constant dense<[[-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0]]> : tensor<8x2xf32>
    %partitionsc1 = stablehlo.constant dense<[0, 1, 2, 3]> : tensor<4xi32>
    %partitionsd1 = stablehlo.constant dense<[1, 1, 1, 0]> : tensor<4xi32>
    %partitionse1 = stablehlo.constant dense<[3, 3, 1, 3]> : tensor<4xi32>
    %partitionsf1 = stablehlo.constant dense<[2, 1, 0, 1]> : tensor<4xi32>
    %partitionsa2 = stablehlo.constant dense<[[24.0, 25.0], [26.0, 27.0], [28.0, 29.0], [30.0, 31.0], [32.0, 33.0], [34.0, 35.0]]> : tensor<6x2xf32>
    %partitionsb2 = stablehlo.constant dense<[[-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0]]> : tensor<8x2xf32>
    %partitionsc2 = stablehlo.constant dense<[0, 2, 2, 2]> : tensor<4xi32>
    %partitionsd2 = stablehlo.constant dense<[2, 0, 0, 1]> : tensor<4xi32>
    %partitionse2 = stablehlo.constant dense<[4, 4, 2, 3]> : tensor<4xi32>
    %partitionsf2 = stablehlo.constant dense<[0, 1, 0, 0]> : tensor<4xi32>
    %partitionsa3 = stablehlo.constant dense<[[36.0, 37.0], [38.0, 39.0], [40.0, 41.0], [42.0, 43.0], [44.0, 45.0], [46.0, 47.0]]> : tensor<6x2xf32>
    %partitionsb3 = stablehlo.constant dense<[[-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0]]> : tensor<8x2xf32>
    %partitionsc3 = stablehlo.constant dense<[0, 1, 2, 2]> : tensor<4xi32>
    %partitionsd3 = stablehlo.constant dense<[1, 1, 0, 0]> : tensor<4xi32>
    %partitionse3 = stablehlo.constant dense<[6, 4, 2, 4]> : tensor<4xi32>
    %partitionsf3 = stablehlo.constant dense<[2, 0, 1, 0]> : tensor<4xi32>
    %partitions:4 = "interpreter.run_parallel"(%partitionsa0, %partitionsb0, %partitionsc0, %partitionsd0, %partitionse0, %partitionsf0, %partitionsa1, %partitionsb1, %partitionsc1, %partitionsd1, %partitionse1, %partitionsf1, %partitionsa2, %partitionsb2, %partitionsc2, %partitionsd2, %partitionse2, %partitionsf2, %partitionsa3, %partitionsb3, %partitionsc3, %partitionsd3, %partitionse3, %partitionsf3) {programs = [[@partitions, @partitions, @partitions, @partitions]]} : (tensor<6x2xf32>, tensor<8x2xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<6x2xf32>, tensor<8x2xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<6x2xf32>, tensor<8x2xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<6x2xf32>, tensor<8x2xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> (tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>)
    check.expect_eq_const %partitions#0, dense<[[-1.0, -1.0], [0.0, 1.0], [2.0, 3.0], [12.0, 13.0], [24.0, 25.0], [26.0, 27.0], [36.0, 37.0], [-1.0, -1.0]]> : tensor<8x2xf32>
    check.expect_eq_const %partitions#1, dense<[[-1.0, -1.0], [4.0, 5.0], [6.0, 7.0], [14.0, 15.0], [38.0, 39.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0]]> : tensor<8x2xf32>
    check.expect_eq_const %partitions#2, dense<[[-1.0, -1.0], [16.0, 17.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0]]> : tensor<8x2xf32>
    check.expect_eq_const %partitions#3, dense<[[-1.0, -1.0], [8.0, 9.0], [10.0, 11.0], [28.0, 29.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0]]> : tensor<8x2xf32>
    return
  }
}
