// run: otrn eval %s
// status: 1
// expect: bad_programs.mlir:10:5: error[VERIFY]: interpreter.run_parallel: argument 0: tensor<3xi32> where @f has tensor<2xi32>
module {
  func.func @f(%a: tensor<2xi32>) -> tensor<2xi32> {
    return %a : tensor<2xi32>
  }
  func.func @main() {
    %a = stablehlo.constant dense<1> : tensor<3xi32>
    %r:2 = "interpreter.run_parallel"(%a, %a) {programs = [[@f, @f]]} : (tensor<3xi32>, tensor<3xi32>) -> (tensor<2xi32>, tensor<2xi32>)
    return
  }
}
