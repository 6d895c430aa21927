// What a function computes belongs to the line that called it, where its own ops name no file and the call does;
// without any, and where the call's is unknown, it is the op's place in this text.
// run: otrn compile %s --explain --cache=off -o %t/out.otrn
// expect: model.py:7 exponential
// expect: 100.0%
// expect-not: inline_place.mlir
// run: sed 's/ loc(.*)//' %s >%t/bare.mlir; otrn check %t/bare.mlir --gpsimd-limit=100
// expect: bare.mlir:25 exponential
// run: sed 's/"model.py":7:3/unknown/' %s >%t/half.mlir; otrn check %t/half.mlir --gpsimd-limit=100
// expect: half.mlir:25 exponential
//
// And --stats tells operations from those inside of them.
// run: otrn compile %s --stats --cache=off -o %t/out.otrn
// expect: stage          ops  inside broadcasts constants
// expect: read             5       0          0         0
// expect: epilogue
// expect: tile
// expect: save
// expect: total
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @grow(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":7:3)
  return %0 : tensor<4xf32>
}
func.func private @grow(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.exponential %x : tensor<4xf32> loc("exp")
  %1 = stablehlo.negate %0 : tensor<4xf32> loc("neg")
  return %1 : tensor<4xf32>
}
