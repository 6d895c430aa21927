// What a loop's body says to be terms goes round as terms, through sums, conversions and a stack that is written row by row: nothing is combined inside
// the loop, and once behind it.
// run: otrn compile %s --dump=spmd -o %t/out.otrn >%t/text && echo "inside $(sed -n '/stablehlo.while/,/^    })/p' %t/text | grep -c '= "stablehlo.all_reduce"'), in all $(grep -c '= "stablehlo.all_reduce"' %t/text)"
// expect: inside 0, in all 2
module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%x: tensor<4x2x4xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>})
      -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, tensor<4x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.constant dense<4> : tensor<i32>
    %z2 = stablehlo.constant dense<0.0> : tensor<4x4xf32>
    %z3 = stablehlo.constant dense<0.0> : tensor<4x4x4xf32>
    %a = sdy.sharding_constraint %z2 <@mesh, [{}, {}], unreduced={"x"}> : tensor<4x4xf32>
    %b = sdy.sharding_constraint %z3 <@mesh, [{}, {}, {}], unreduced={"x"}> : tensor<4x4x4xf32>
    %r:3 = stablehlo.while(%i = %zero, %sum = %a, %stack = %b) : tensor<i32>, tensor<4x4xf32>, tensor<4x4x4xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %s = stablehlo.dynamic_slice %x, %i, %zero, %zero, sizes = [1, 2, 4] : (tensor<4x2x4xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x4xbf16>
      %m = stablehlo.reshape %s : (tensor<1x2x4xbf16>) -> tensor<2x4xbf16>
      %d = stablehlo.dot_general %m, %m, contracting_dims = [0] x [0] : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<4x4xbf16>
      %e = sdy.sharding_constraint %d <@mesh, [{}, {}], unreduced={"x"}> : tensor<4x4xbf16>
      %f = stablehlo.convert %e : (tensor<4x4xbf16>) -> tensor<4x4xf32>
      %g = sdy.sharding_constraint %f <@mesh, [{}, {}], unreduced={"x"}> : tensor<4x4xf32>
      %h = stablehlo.add %sum, %g : tensor<4x4xf32>
      %k = sdy.sharding_constraint %h <@mesh, [{}, {}], unreduced={"x"}> : tensor<4x4xf32>
      %m2 = stablehlo.negate %m : tensor<2x4xbf16>
      %d2 = stablehlo.dot_general %m, %m2, contracting_dims = [0] x [0] : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<4x4xf32>
      %g2 = sdy.sharding_constraint %d2 <@mesh, [{}, {}], unreduced={"x"}> : tensor<4x4xf32>
      %row = stablehlo.broadcast_in_dim %g2, dims = [1, 2] : (tensor<4x4xf32>) -> tensor<1x4x4xf32>
      %rs = sdy.sharding_constraint %row <@mesh, [{}, {}, {}], unreduced={"x"}> : tensor<1x4x4xf32>
      %w = stablehlo.dynamic_update_slice %stack, %rs, %i, %zero, %zero : (tensor<4x4x4xf32>, tensor<1x4x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x4x4xf32>
      %ws = sdy.sharding_constraint %w <@mesh, [{}, {}, {}], unreduced={"x"}> : tensor<4x4x4xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %k, %ws : tensor<i32>, tensor<4x4xf32>, tensor<4x4x4xf32>
    }
    %o1 = sdy.sharding_constraint %r#1 <@mesh, [{}, {}]> : tensor<4x4xf32>
    %o2 = sdy.sharding_constraint %r#2 <@mesh, [{}, {}, {}]> : tensor<4x4x4xf32>
    return %o1, %o2 : tensor<4x4xf32>, tensor<4x4x4xf32>
  }
}
