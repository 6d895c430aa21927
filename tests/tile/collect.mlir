// A large collective goes in pieces, each core of a pair its own rows: gathered, scattered, summed and exchanged along an axis behind
// the one that is cut. A chip with slow links makes these small ones large. Bits are those of whole collectives, on one core and two.
// run: sed -E 's/^(link_[a-z]*_?bandwidth_per_core) = [0-9.]+/\1 = 0.1/; s/^(collective_[a-z_]+) = [0-9.]+/\1 = 0/' chips/trn2.chip >%t/slow.chip
// run: otrn eval %S/data/collect_gen.mlir --output=%t/in >%t/log
// run: IN=%t/in/result_0.npy,%t/in/result_1.npy,%t/in/result_2.npy; otrn run %s --input=$IN --output=%t/whole >%t/log && otrn run %s --target=%t/slow.chip --input=$IN --output=%t/two >%t/log && otrn run %s --target=%t/slow.chip --lnc=1 --input=$IN --output=%t/one >%t/log && otrn run %s --target=%t/slow.chip --check --input=$IN --output=%t/checked >%t/log && otrn run %s --target=%t/slow.chip --plan=off --input=$IN --output=%t/plain >%t/log
// run: for i in 0 1 2; do for d in two one checked plain; do cmp %t/whole/result_$i.npy %t/$d/result_$i.npy || exit 1; done; done; echo same bits
// expect: same bits
// run: for t in trn2 %t/slow.chip; do otrn prof %s --target=$t 2>/dev/null | grep -E '^(all_gather|all_reduce|all_to_all|reduce_scatter) ' | tr -s ' '; done
// expect: 4 devices chip 1
// expect: 4 devices chip 1
// expect: 4 devices chip 16
// expect: 4 devices chip 16
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["t"=4]>
  func.func public @main(%x: tensor<16x128x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"t"}, {}]>},
                         %w1: tensor<32x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"t"}]>},
                         %w2: tensor<2048x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"t"}, {}]>})
      -> (tensor<16x128x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"t"}, {}]>},
          tensor<16x128x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>},
          tensor<16x128x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"t"}]>}) {
    %g = sdy.sharding_constraint %x <@mesh, [{}, {}, {}]> : tensor<16x128x32xf32>
    %h = stablehlo.dot_general %g, %w1, contracting_dims = [2] x [0] : (tensor<16x128x32xf32>, tensor<32x2048xf32>) -> tensor<16x128x2048xf32>
    %t = stablehlo.tanh %h : tensor<16x128x2048xf32>
    %y = stablehlo.dot_general %t, %w2, contracting_dims = [2] x [0] : (tensor<16x128x2048xf32>, tensor<2048x32xf32>) -> tensor<16x128x32xf32>
    %r = sdy.sharding_constraint %y <@mesh, [{}, {"t"}, {}]> : tensor<16x128x32xf32>
    %q = stablehlo.multiply %h, %h : tensor<16x128x2048xf32>
    %s = stablehlo.dot_general %q, %w2, contracting_dims = [2] x [0] : (tensor<16x128x2048xf32>, tensor<2048x32xf32>) -> tensor<16x128x32xf32>
    %n = stablehlo.negate %r : tensor<16x128x32xf32>
    return %n, %s, %r : tensor<16x128x32xf32>, tensor<16x128x32xf32>, tensor<16x128x32xf32>
  }
}
