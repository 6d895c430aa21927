// The same in groups of replicas, two pieces for each device, offsets of 64 bits.
// run: otrn eval %s
// run: otrn run %s
// run: otrn run %s --plan=off --check --host=portable
module {
  func.func @replicas(%rows: tensor<8x1xf32>, %out: tensor<9x1xf32>, %start: tensor<4xi64>, %size: tensor<4xi64>, %place: tensor<4xi64>, %coming: tensor<4xi64>) -> tensor<9x1xf32> {
    %0 = stablehlo.custom_call @ragged_all_to_all(%rows, %out, %start, %size, %place, %coming) {api_version = 4 : i32, backend_config = {replica_groups = dense<[[0, 2], [3, 1]]> : tensor<2x2xi64>}} : (tensor<8x1xf32>, tensor<9x1xf32>, tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<4xi64>) -> tensor<9x1xf32>
    return %0 : tensor<9x1xf32>
  }
  func.func @main() {
    %replicasa0 = stablehlo.constant dense<[[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0]]> : tensor<8x1xf32>
    %replicasb0 = stablehlo.constant dense<[[-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0]]> : tensor<9x1xf32>
    %replicasc0 = stablehlo.constant dense<[0, 0, 0, 0]> : tensor<4xi64>
    %replicasd0 = stablehlo.constant dense<[0, 0, 0, 2]> : tensor<4xi64>
    %replicase0 = stablehlo.constant dense<[1, 1, 1, 1]> : tensor<4xi64>
    %replicasf0 = stablehlo.constant dense<[0, 0, 0, 1]> : tensor<4xi64>
    %replicasa1 = stablehlo.constant dense<[[8.0], [9.0], [10.0], [11.0], [12.0], [13.0], [14.0], [15.0]]> : tensor<8x1xf32>
    %replicasb1 = stablehlo.constant dense<[[-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0]]> : tensor<9x1xf32>
    %replicasc1 = stablehlo.constant dense<[0, 0, 1, 3]> : tensor<4xi64>
    %replicasd1 = stablehlo.constant dense<[0, 1, 2, 0]> : tensor<4xi64>
    %replicase1 = stablehlo.constant dense<[3, 3, 5, 7]> : tensor<4xi64>
    %replicasf1 = stablehlo.constant dense<[2, 2, 2, 0]> : tensor<4xi64>
    %replicasa2 = stablehlo.constant dense<[[16.0], [17.0], [18.0], [19.0], [20.0], [21.0], [22.0], [23.0]]> : tensor<8x1xf32>
    %replicasb2 = stablehlo.constant dense<[[-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0]]> : tensor<9x1xf32>
    %replicasc2 = stablehlo.constant dense<[0, 0, 1, 1]> : tensor<4xi64>
    %replicasd2 = stablehlo.constant dense<[0, 1, 0, 2]> : tensor<4xi64>
    %replicase2 = stablehlo.constant dense<[1, 1, 3, 3]> : tensor<4xi64>
    %replicasf2 = stablehlo.constant dense<[0, 2, 0, 2]> : tensor<4xi64>
    %replicasa3 = stablehlo.constant dense<[[24.0], [25.0], [26.0], [27.0], [28.0], [29.0], [30.0], [31.0]]> : tensor<8x1xf32>
    %replicasb3 = stablehlo.constant dense<[[-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0]]> : tensor<9x1xf32>
    %replicasc3 = stablehlo.constant dense<[0, 0, 2, 4]> : tensor<4xi64>
    %replicasd3 = stablehlo.constant dense<[0, 2, 2, 2]> : tensor<4xi64>
    %replicase3 = stablehlo.constant dense<[1, 1, 1, 3]> : tensor<4xi64>
    %replicasf3 = stablehlo.constant dense<[0, 2, 0, 1]> : tensor<4xi64>
    %replicas:4 = "interpreter.run_parallel"(%replicasa0, %replicasb0, %replicasc0, %replicasd0, %replicase0, %replicasf0, %replicasa1, %replicasb1, %replicasc1, %replicasd1, %replicase1, %replicasf1, %replicasa2, %replicasb2, %replicasc2, %replicasd2, %replicase2, %replicasf2, %replicasa3, %replicasb3, %replicasc3, %replicasd3, %replicase3, %replicasf3) {programs = [[@replicas], [@replicas], [@replicas], [@replicas]]} : (tensor<8x1xf32>, tensor<9x1xf32>, tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<8x1xf32>, tensor<9x1xf32>, tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<8x1xf32>, tensor<9x1xf32>, tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<8x1xf32>, tensor<9x1xf32>, tensor<4xi64>, tensor<4xi64>, tensor<4xi64>, tensor<4xi64>) -> (tensor<9x1xf32>, tensor<9x1xf32>, tensor<9x1xf32>, tensor<9x1xf32>)
    check.expect_eq_const %replicas#0, dense<[[-1.0], [16.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0]]> : tensor<9x1xf32>
    check.expect_eq_const %replicas#1, dense<[[-1.0], [26.0], [27.0], [28.0], [29.0], [9.0], [10.0], [-1.0], [-1.0]]> : tensor<9x1xf32>
    check.expect_eq_const %replicas#2, dense<[[-1.0], [0.0], [1.0], [17.0], [18.0], [-1.0], [-1.0], [-1.0], [-1.0]]> : tensor<9x1xf32>
    check.expect_eq_const %replicas#3, dense<[[-1.0], [24.0], [25.0], [8.0], [-1.0], [-1.0], [-1.0], [-1.0], [-1.0]]> : tensor<9x1xf32>
    return
  }
}
