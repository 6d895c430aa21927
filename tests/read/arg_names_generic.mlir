// run: otrn compile %s -o %t/1.otrn && otrn dis %t/1.otrn
// expect: .arg f32[4] "params['w']"
// expect: .arg f32[4] "x"
"builtin.module"() ({
  "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>, sym_name = "main"}> ({
  ^bb0(%w: tensor<4xf32> loc("params['w']"), %x: tensor<4xf32> loc(#named)):
    %a = "stablehlo.add"(%w, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%a) : (tensor<4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
#named = loc("x")
