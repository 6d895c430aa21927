// Meshes and shardings pass through; an op of Shardy stands between casts in bytecode, and nowhere else.
// run: otrn compile %s --emit=mlirbc -o %t/1.mlirbc
// run: otrn compile %t/1.mlirbc --emit=mlir --locs -o %t/2.mlir
// run: otrn compile %t/2.mlir --emit=mlirbc -o %t/3.mlirbc
// run: cmp %t/1.mlirbc %t/3.mlirbc && grep -c unrealized_conversion_cast %t/1.mlirbc && otrn compile %t/1.mlirbc --emit=mlir
// expect: 1
// expect: sdy.mesh @mesh = <["x"=4, "y"=2]>
// expect: {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y", ?}p1]>}
// expect: %0 = "sdy.sharding_constraint"(%arg0) <{sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
// expect: stablehlo.add %0, %0 : tensor<8x8xf32>
// expect-not: cast
module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y", ?}p1]>}) -> tensor<8x8xf32> {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
    %1 = stablehlo.add %0, %0 : tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
}
