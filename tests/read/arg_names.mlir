// JAX tells the names of arguments by their locations; text and bytecode keep them (the generic form in arg_names_generic.mlir).
// run: otrn compile %s -o %t/1.otrn && otrn dis %t/1.otrn
// expect: .arg f32[4] "params['w']"
// expect: .arg f32[4] "x"
// expect: .arg f32[4]
// expect: .arg f32[4] "told"
// run: otrn compile %s --emit=mlirbc -o %t/2.mlirbc && otrn compile %t/2.mlirbc -o %t/2.otrn && otrn dis %t/2.otrn
// expect: .arg f32[4] "params['w']"
// expect: .arg f32[4] "x"
// expect: .arg f32[4]
// expect: .arg f32[4] "told"
// run: otrn compile %t/2.mlirbc --emit=mlir --locs
// expect: @main(%arg0: tensor<4xf32> loc(#loc
func.func @main(%w: tensor<4xf32> loc("params['w']"), %x: tensor<4xf32> loc(#named), %y: tensor<4xf32> loc(unknown), %z: tensor<4xf32> {jax.arg_info = "told"} loc("located")) -> tensor<4xf32> {
  %a = stablehlo.add %w, %x : tensor<4xf32>
  %b0 = stablehlo.add %y, %z : tensor<4xf32>
  %b = stablehlo.add %a, %b0 : tensor<4xf32>
  return %b : tensor<4xf32>
}
#named = loc("x"("model.py":3:1))
