// All operations without a kernel are named, each with its source line.
// run: otrn check %s; test $? = 5
// expect: train.py:12:1: error[UNSUPPORTED]: stablehlo.custom_call @one.op on f32 has no kernel yet
// expect: hint: 2 more have none: @another.op at train.py:14, @third.op at model.py:3
// expect: verdict: not supported
// run: sed 's/@one.op/@lapack_spotrf_ffi/' %s >%t/cpu.mlir; otrn check %t/cpu.mlir
// expect: hint: JAX calls it on its CPU; lowered for opentrn a program has operations instead; 2 more
// status: 5
func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @one.op(%a) : (tensor<4xf32>) -> tensor<4xf32> loc("train.py":12:1)
  %1 = stablehlo.custom_call @another.op(%0) : (tensor<4xf32>) -> tensor<4xf32> loc("train.py":14:1)
  %2 = stablehlo.custom_call @third.op(%1) : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":3:1)
  return %2 : tensor<4xf32>
}
