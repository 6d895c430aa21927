// Aliases in front of and behind their use, of types, attributes and locations; an error then names
// the place in the user's own program, callee first.
// run: otrn compile %s -o %t/out.otrn
// expect: model.py:12:5: error[VERIFY]: stablehlo.add: types tensor<4xf32> and tensor<8xf32> differ (C1) (in jit(step)/add)
// status: 1
!vec = tensor<4xf32>
#gt = #stablehlo<comparison_direction GT>
#dims = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>
module @jit_step {
  func.func public @main(%a: !vec loc("a"), %b: tensor<8xf32> loc(#loc2)) -> !vec {
    %0 = "stablehlo.compare"(%a, %a) <{comparison_direction = #gt}> : (!vec, !vec) -> tensor<4xi1> loc(#loc5)
    %1 = "stablehlo.dot_general"(%a, %a) <{dot_dimension_numbers = #dims}> : (!vec, !vec) -> tensor<f32> loc(#loc6)
    %2 = "stablehlo.add"(%a, %b) : (!vec, !wide) -> !vec loc(#loc5)
    return %2 : !vec loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
!wide = tensor<8xf32>
#loc5 = loc("jit(step)/add"(#loc4))
#loc6 = loc(fused<"meta">[#loc, "x.py":1:2 to :9, #loc5])
#loc4 = loc(callsite(#loc3 at #loc1))
#loc1 = loc("train"("train.py":90:1 to 91:3))
#loc2 = loc("b")
#loc3 = loc("layer"("model.py":12:5 to 12:17))
