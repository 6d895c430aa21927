// What a program became, what stayed on GpSimd and why, memory, and a verdict with an exit status of its own.
// run: otrn check %s; test $? = 3
// expect: check_program.mlir:30 sort
// expect: 1 sort
// expect: gpsimd
// expect: on GpSimd: 1 line
// expect: sort: the order depends on the data, element by element
// expect: spilled between steps: 0 B to HBM, 1.049 MB back
// expect: peak HBM: 3.146 MB of 25.77 GB; live there
// expect: 1.049 MB  argument 0
// expect: verdict: runs, but much of it on GpSimd
// run: otrn check %s --gpsimd-limit=90
// expect: verdict: supported
// run: otrn compile %s --explain --cache=off
// expect: activation
// expect: verdict:
// run: sed 's/512x512/60000x60000/g' %s >%t/big.mlir; otrn check %t/big.mlir; test $? = 4
// expect: error[CAPACITY]
// expect: verdict: does not fit
// run: printf 'func.func @main(%%%%a: tensor<4xf32>) -> tensor<4xf32> {\n%%%%0 = stablehlo.custom_call @nobody_knows(%%%%a) : (tensor<4xf32>) -> tensor<4xf32>\nreturn %%%%0 : tensor<4xf32>\n}\n' >%t/u.mlir; otrn check %t/u.mlir; test $? = 5
// expect: u.mlir:2:1: error[UNSUPPORTED]
// expect: verdict: not supported
// run: echo garbage >%t/bad.mlir; otrn check %t/bad.mlir; test $? = 1
// expect: error[PARSE]
// run: otrn check %s --lnc=2 --target=trn1; test $? = 2
// expect: --lnc=2: trn1 has no logical cores of two
// expect: hint: trn2 and trn3 have them
// run: test -z "$(otrn check %s --lnc=2 --target=trn1 2>%t/said)"
func.func @main(%a: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %0 = "stablehlo.sort"(%a) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %c = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }) : (tensor<512x512xf32>) -> tensor<512x512xf32>
  %1 = stablehlo.tanh %0 : tensor<512x512xf32>
  return %1 : tensor<512x512xf32>
}
