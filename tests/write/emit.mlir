// The program as read, as text with and without locations, and as bytecode.
// run: otrn compile %s --emit=mlirbc 2>&1; test $? = 2
// run: otrn compile %s --emit=hlo 2>&1; test $? = 2
// run: otrn compile %s --emit=mlir --dump=dce 2>&1; test $? = 2
// run: otrn compile %s --emit=mlirbc -o %t/a.mlirbc && head -c 4 %t/a.mlirbc | od -An -tx1
// run: otrn compile %t/a.mlirbc --emit=mlir --locs
// run: otrn compile %s --emit=mlir
// expect: --emit=mlirbc writes bytes: -o FILE is missing
// expect: --emit: 'hlo' is not one of artifact|mlir|mlirbc
// expect: --emit writes the program as read: not with --dump
// expect: 4d 4c ef 52
// expect: %0 = stablehlo.sine %arg0 : tensor<2xf32> loc(#loc3)
// expect: %1 = stablehlo.exponential %arg0 : tensor<2xf32> loc(#loc6)
// expect: func.return %1 : tensor<2xf32> loc(unknown)
// expect: #loc1 = loc("a")
// expect: #loc2 = loc("model.py":7:3)
// expect: #loc3 = loc(fused[#loc1, #loc2])
// expect: #loc4 = loc("jit(f)/exp"(#loc2))
// expect: #loc5 = loc("main.py":1:1)
// expect: #loc6 = loc(callsite(#loc4 at #loc5))
// expect: emit.mlir":
// expect: %1 = stablehlo.exponential %arg0 : tensor<2xf32>
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %dead = stablehlo.sine %x : tensor<2xf32> loc(fused["a", "model.py":7:3])
  %0 = stablehlo.exponential %x : tensor<2xf32> loc(callsite("jit(f)/exp"("model.py":7:3) at "main.py":1:1))
  return %0 : tensor<2xf32> loc(unknown)
}
