// A device waits for one that has ended.
// run: otrn run --cache=off %s; otrn eval %s
// status: 1
// expect: bad_wait.mlir:11:5: error[CHECK]: device 0: this never completes: device 0 waits in all_reduce of 2 devices, device 1 has ended
// expect: bad_wait.mlir:11:5: error[CHECK]: device 0: stablehlo.all_reduce: this never completes
module {
  func.func @f(%a: tensor<2xi32>) -> tensor<2xi32> {
    // the place in the message is the op's
    // in this file,
    // not in a part of it
    %r = "stablehlo.all_reduce"(%a) ({
      ^bb0(%x: tensor<i32>, %y: tensor<i32>):
        %s = stablehlo.add %x, %y : tensor<i32>
        stablehlo.return %s : tensor<i32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xi32>) -> tensor<2xi32>
    return %r : tensor<2xi32>
  }
  func.func @g(%a: tensor<2xi32>) -> tensor<2xi32> {
    return %a : tensor<2xi32>
  }
  func.func @main() {
    %a = stablehlo.constant dense<1> : tensor<2xi32>
    %r:2 = "interpreter.run_parallel"(%a, %a) {programs = [[@f], [@g]]} : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>)
    return
  }
}
