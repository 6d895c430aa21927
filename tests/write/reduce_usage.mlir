// What the command must be, what happens when it never succeeds or takes too long, and what an interrupt leaves.
// run: otrn reduce %s 2>&1; test $? = 2
// run: otrn reduce %s --test=true 2>&1; test $? = 2
// run: otrn reduce %s --test='false %%s' 2>&1; test $? = 1
// run: otrn reduce %s --limit=1 --test='grep -q sine %%s || sleep 60' 2>&1
// run: sh -c 'echo $$ > %t/pid; exec otrn reduce %s --test="test -e %t/stop && kill -TERM \$(cat %t/pid); touch %t/stop; grep -q sine %%s" -o %t/o.mlir' 2>&1; test $? = 1 && otrn eval %t/o.mlir --input=/nonexistent 2>&1 | grep -c nonexistent
// expect: --test needs a command in which %s stands for the program's file
// expect: --test needs a command in which %s stands for the program's file
// expect: the command does not succeed on the program itself
// expect: -> 1 ops
// expect: stablehlo.sine
// expect: interrupted: 2 ops
// expect: 1
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.exponential %x : tensor<2xf32>
  %1 = stablehlo.sine %0 : tensor<2xf32>
  return %1 : tensor<2xf32>
}
