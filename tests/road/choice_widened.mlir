// A choice between a tensor widened on the way and another one copies bits: the narrow one is widened first.
// run: otrn eval %S/data/choice_widened_in.mlir --output=%t/in >%t/log
// run: IN=$(echo %t/in/result_*.npy | tr ' ' ','); otrn eval %s --input=$IN --output=%t/want >%t/log; for t in trn1 trn2 trn3; do otrn run %s --target=$t --input=$IN --output=%t/got >%t/log && for i in 0 1 2 3; do cmp %t/want/result_$i.npy %t/got/result_$i.npy && echo $t $i; done; done
// expect: trn1 0
// expect: trn1 1
// expect: trn1 2
// expect: trn1 3
// expect: trn2 3
// expect: trn3 3
// expect-not: differ
func.func @main(%a: tensor<300x200xbf16>, %b: tensor<300x200xf16>, %c: tensor<300x200xf32>, %p: tensor<300x200xi1>) -> (tensor<300x200xf32>, tensor<300x200xf32>, tensor<300x200xf32>, tensor<300x200xf32>) {
  %wa = stablehlo.convert %a : (tensor<300x200xbf16>) -> tensor<300x200xf32>
  %wb = stablehlo.convert %b : (tensor<300x200xf16>) -> tensor<300x200xf32>
  %0 = stablehlo.select %p, %wa, %wb : tensor<300x200xi1>, tensor<300x200xf32>
  %1 = stablehlo.select %p, %wb, %wa : tensor<300x200xi1>, tensor<300x200xf32>
  %2 = stablehlo.select %p, %wa, %c : tensor<300x200xi1>, tensor<300x200xf32>
  %3 = stablehlo.select %p, %c, %wa : tensor<300x200xi1>, tensor<300x200xf32>
  return %0, %1, %2, %3 : tensor<300x200xf32>, tensor<300x200xf32>, tensor<300x200xf32>, tensor<300x200xf32>
}
