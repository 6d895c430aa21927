// Attributes of every kind keep their kind through bytecode, and the way through text gives the same bytes.
// run: otrn compile %s --emit=mlirbc -o %t/1.mlirbc
// run: otrn compile %t/1.mlirbc --emit=mlir --locs -o %t/2.mlir
// run: otrn compile %t/2.mlir --emit=mlirbc -o %t/3.mlirbc
// run: cmp %t/1.mlirbc %t/3.mlirbc && otrn compile %t/1.mlirbc --emit=mlir
// expect: module @attributes attributes {m.bool = true, m.unit}
// expect: a.array = array<i64: 1, -2>, a.bools = array<i1: true, false>
// expect: a.dense = dense<[-1, 7]> : tensor<2xi4>
// expect: a.dict = {k = 1 : i64, list = [unit, "s\00\22", @f]}
// expect: a.enum = #stablehlo<comparison_direction EQ>
// expect: a.float = 1.500000e+00 : f16, a.func = (tensor<2xf32>) -> f32
// expect: a.int = -5 : i8, a.nan = 0x7FC00000 : f32, a.nested = @f::@g, a.odd = 0x7d : i7
// expect: a.type = tensor<2x?xf8E4M3FN>, a.wide = 18446744073709551615 : ui64
module @attributes attributes {m.bool = true, m.unit} {
  func.func public @main(%arg0: tensor<2xf32> {x.sharding = "{replicated}"}) -> (tensor<2xf32> {x.info = "r"}) attributes {f.y = 1 : index} {
    %0 = stablehlo.add %arg0, %arg0 {
      a.array = array<i64: 1, -2>, a.bools = array<i1: true, false>,
      a.dense = dense<[-1, 7]> : tensor<2xi4>, a.dict = {k = 1, list = [unit, "s\00\22", @f]},
      a.enum = #stablehlo<comparison_direction EQ>, a.float = 1.5 : f16,
      a.func = (tensor<2xf32>) -> f32, a.int = -5 : i8, a.nan = 0x7FC00000 : f32,
      a.nested = @f::@g, a.odd = -3 : i7, a.type = tensor<2x?xf8E4M3FN>,
      a.wide = 18446744073709551615 : ui64} : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
  func.func private @f(tensor<2xf32> {x.y}) -> tensor<2xf32>
}
