// The old form of a sum, and a collective whose future is waited for.
// run: otrn eval %s
// run: otrn run --cache=off %s
module {
  func.func @old(%a: tensor<2xi32>) -> (tensor<2xi32>, tensor<4xi32>) {
    %r = "stablehlo.cross-replica-sum"(%a) {replica_groups = dense<> : tensor<0x0xi64>} : (tensor<2xi32>) -> tensor<2xi32>
    %f = "stablehlo.async_start"(%r) ({
      ^bb0(%x: tensor<2xi32>):
        %g = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>}
          : (tensor<2xi32>) -> tensor<4xi32>
        stablehlo.return %g : tensor<4xi32>
    }) : (tensor<2xi32>) -> !stablehlo.future<tensor<4xi32>>
    %two = stablehlo.constant dense<2> : tensor<2xi32>
    %t = stablehlo.multiply %a, %two : tensor<2xi32>
    %d = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<4xi32>>) -> tensor<4xi32>
    interpreter.print %d : tensor<4xi32>
    %p = interpreter.probe %t, probe_id = "twice" : tensor<2xi32>
    return %p, %d : tensor<2xi32>, tensor<4xi32>
  }
  func.func @main() {
    %a = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
    %b = stablehlo.constant dense<[10, 20]> : tensor<2xi32>
    %r:4 = "interpreter.run_parallel"(%a, %b) {programs = [[@old], [@old]]}
      : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<4xi32>, tensor<2xi32>, tensor<4xi32>)
    check.expect_eq_const %r#0, dense<[2, 4]> : tensor<2xi32>
    check.expect_eq_const %r#1, dense<[11, 22, 11, 22]> : tensor<4xi32>
    check.expect_eq_const %r#2, dense<[20, 40]> : tensor<2xi32>
    check.expect_eq_const %r#3, dense<[11, 22, 11, 22]> : tensor<4xi32>
    return
  }
}
