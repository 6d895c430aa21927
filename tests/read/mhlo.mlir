// XLA's own dialect: its twins of StableHLO's operations and attributes, a copy, its error function; the module's list of
// results that take over arguments goes to the arguments.
// run: otrn compile %s --dump=read
// expect: %arg0: tensor<4xf32>, %arg1: tensor<4xf32> {mhlo.sharding = "{replicated}", tf.aliasing_output = 1 : i64}
// expect: stablehlo.reshape
// expect: stablehlo.compare
// expect: chlo.erf
#gt = #mhlo<comparison_direction GT>
#dims = #mhlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>
module @m attributes {mhlo.input_output_alias = [
    {alias = {kind = "may_alias", parameter_index = array<i64>, parameter_number = 1 : i64}, output_index = array<i64: 1>},
    {alias = {kind = "may_alias", parameter_index = array<i64>, parameter_number = 7 : i64}, output_index = array<i64: 0>},
    {alias = {kind = "may_alias", parameter_index = array<i64: 1>, parameter_number = 0 : i64}, output_index = array<i64: 0>}]} {
  func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32> {mhlo.sharding = "{replicated}"}) -> (tensor<f32>, tensor<4xf32>) {
    %0 = mhlo.copy %a : tensor<4xf32>
    %1 = "mhlo.compare"(%0, %b) <{comparison_direction = #gt}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %2 = mhlo.erf %b : tensor<4xf32>
    %3 = mhlo.select %1, %2, %0 : tensor<4xi1>, tensor<4xf32>
    %4 = "mhlo.dot_general"(%3, %0) <{dot_dimension_numbers = #dims}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
    %5 = mhlo.add %0, %b : tensor<4xf32>
    return %4, %5 : tensor<f32>, tensor<4xf32>
  }
}
