// Products, or all plain operations, in a narrower type: as the options say, with the chip's own roundings.
// run: otrn run %s
// expect: result 0: tensor<2xf32>: 1.002 1.002
// expect: result 1: tensor<2xf32>: 2.71828 2.71828
// run: otrn run %s --auto-cast=matmult
// expect: result 0: tensor<2xf32>: 1 1
// expect: result 1: tensor<2xf32>: 2.71828 2.71828
// run: otrn run %s --auto-cast=matmult --auto-cast-type=tf32 | head -1
// expect: result 0: tensor<2xf32>: 1.00195 1.00195
// run: otrn run %s --auto-cast=all
// expect: result 0: tensor<2xf32>: 1 1
// expect: result 1: tensor<2xf32>: 2.71875 2.71875
// run: otrn run %s --auto-cast=all --cast-ops=exponential=none | tail -1
// expect: result 1: tensor<2xf32>: 2.71828 2.71828
// run: otrn run %s --cast-ops=autocast.mlir:43=bf16 | head -1
// expect: result 0: tensor<2xf32>: 1 1
// run: otrn dis %s --auto-cast=matmult --auto-cast-type=fp8_e4m3 --rounding=stochastic | egrep 'precision|rounding'
// expect: .precision "matmult fp8_e4m3"
// expect: .rounding stochastic
// run: otrn compile %s --auto-cast=matmult --cache-dir=%t/c -o %t/a.otrn; otrn cache why %s --cache-dir=%t/c --auto-cast=all; test $? = 1
// expect: --auto-cast was matmult, now all
// run: otrn cache why %s --cache-dir=%t/c; test $? = 1
// expect: --auto-cast was matmult, now none
// run: otrn run %s --cast-ops=exp=bf16; test $? = 2
// expect: there is no operation `exp`
// run: otrn run %s --cast-ops=add=int8; test $? = 2
// expect: is not NAME=TYPE
// run: otrn run %s --cast-ops=exponentail=bf16; test $? = 2
// expect: did you mean `exponential`?
// run: otrn run %s --cast-ops=sort=none,sort=bf16; test $? = 2
// expect: `sort` does not compute in a narrower type
// run: otrn run %s --cast-ops=autocast.mlir:x=bf16; test $? = 2
// expect: `autocast.mlir:x` is not FILE:NUMBER
// run: otrn compile %s --auto-cast=all --dump=dce | grep -c bf16
// expect: 6
// run: sed 's/DEFAULT, DEFAULT/HIGHEST, DEFAULT/' %s >%t/high.mlir; otrn run %t/high.mlir --auto-cast=matmult | head -1
// expect: result 0: tensor<2xf32>: 1.002 1.002
func.func @main() -> (tensor<2xf32>, tensor<2xf32>) {
  %a = stablehlo.constant dense<1.001> : tensor<2x1xf32>
  %b = stablehlo.constant dense<1.001> : tensor<1xf32>
  %c = stablehlo.constant dense<1.0> : tensor<2xf32>

  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x1xf32>, tensor<1xf32>) -> tensor<2xf32>
  %1 = stablehlo.exponential %c : tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
