// Attributes that opentrn only carries along come out as they went in.
// run: otrn compile %s --dump=read -o %t/out.otrn >%t/a.mlir
// run: otrn compile %t/a.mlir --dump=read -o %t/out.otrn >%t/b.mlir
// run: cmp %t/a.mlir %t/b.mlir && cat %t/a.mlir
// expect: all = [true, 5 : i64, -7 : i8, 2.500000e+00 : f32, 1.000000e-01 : f64, 0x7FC00000 : f32, "q\22\0A\FF", @sym, @"sym bol", @a::@b]
// expect: arrays = [array<i64: 1, 2>, array<i1: true, false>, array<i32>, array<f32: 1.0, 2.0>]
// expect: map = affine_map<(d0, d1) -> (d1, d0)>
// expect: nested = {a = {b = [[], {}]}, flag}
// expect: sdy = #sdy.sharding<@mesh, [{"x", ?}p1, {}], replicated={"y"}>
// expect: types = [f32, tensor<2x?xi4>, tuple<>, (i32) -> (), !other.type<3, "a>b">, none, memref<2xf32>]
// expect: "un usual" = dense<[1, 2]> : tensor<2xindex>
// expect: @bounded(tensor<?x4xf32, #stablehlo.bounds<8, ?>>) -> (tensor<2x!quant.uniform<i8:f32:0, {5.000000e-01, 1.000000e-01:-30}>> {k = 1 : i64})
module attributes {
  all = [true, 5, -7 : i8, 2.5 : f32, 0.1, 0x7FC00000 : f32, "q\22\n\ff", @sym, @"sym bol", @a::@b],
  arrays = [array<i64: 1, 2>, array<i1: true, false>, array<i32>, array<f32: 1.0, 2.0>],
  nested = {flag, a = {b = [[], {}]}}, map = affine_map<(d0, d1)
     -> (d1, d0)>, // a comment
  sdy = #sdy.sharding<@mesh, [ {"x", ?}p1, {} ], replicated={"y"}>,
  types = [f32, tensor<2x?xi4>, tuple<>, (i32) -> (), !other.type<3, "a>b">, none, memref<2xf32>],
  "un usual" = dense<[1, 2]> : tensor<2xindex>} {
  func.func private @bounded(tensor<?x4xf32, #stablehlo.type_extensions<bounds = [8, ?]>>) -> (tensor<2x!quant.uniform<i8<-128:127>:f32:0, {0.5:0,0.1:-30}>> {k = 1})
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}
