// Two devices reach different collectives: neither hangs.
// run: otrn eval %s
// status: 1
// expect: every device of a group must reach the same collectives in the same order
module {
  func.func @f(%a: tensor<2xi32>) -> tensor<2xi32> {
    %r = "stablehlo.collective_broadcast"(%a) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xi32>) -> tensor<2xi32>
    return %r : tensor<2xi32>
  }
  func.func @g(%a: tensor<2xi32>) -> tensor<2xi32> {
    %r = "stablehlo.all_to_all"(%a) {split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64,
        replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xi32>) -> tensor<2xi32>
    return %r : tensor<2xi32>
  }
  func.func @main() {
    %a = stablehlo.constant dense<1> : tensor<2xi32>
    %r:2 = "interpreter.run_parallel"(%a, %a) {programs = [[@f], [@g]]} : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>)
    return
  }
}
