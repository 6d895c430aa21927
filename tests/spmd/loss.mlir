// A cross entropy and its gradient as PyTorch writes them, rows of scores cut over `tp`, the batch over `dp`. The sum of a row that holds one number needs
// no other device, what is picked meets with the sum of the exponentials, and the number of targets meets right behind the first collective. The same
// numbers as without the passes.
// run: otrn compile %s --dump=buckets --cache=off -o %t/a.otrn | grep 'stablehlo.all_reduce\|^    }) : (' | sed 's/ <{.*groups = / over /;s/ : tensor<2x2.*//;s/%[0-9a-z#]*//g'
// expect: = "stablehlo.all_reduce"() over dense<[[0, 1], [2, 3]]>
// expect: }) : (tensor<8x32xf32>) -> tensor<8x32xf32>
// expect: = "stablehlo.all_reduce"() over dense<[[0, 2], [1, 3]]>
// expect: }) : (tensor<i64>) -> tensor<i64>
// expect: = "stablehlo.all_reduce"() over dense<[[0, 1], [2, 3]]>
// expect: }) : (tensor<8xf32>) -> tensor<8xf32>
// expect: :2 = "stablehlo.all_reduce"(, ) over dense<[[0, 1], [2, 3]]>
// expect: }) : (tensor<8xf32>, tensor<8x1xf32>) -> (tensor<8xf32>, tensor<8x1xf32>)
// expect: :2 = "stablehlo.all_reduce"(, ) over dense<[[0, 2], [1, 3]]>
// expect: }) : (tensor<f32>, tensor<32x16xf32>) -> (tensor<f32>, tensor<32x16xf32>)
// expect: = "stablehlo.all_reduce"() over dense<[[0, 1], [2, 3]]>
// expect: }) : (tensor<8x32xf32>) -> tensor<8x32xf32>
// run: printf '%%s' 'func.func @main() -> (tensor<16x8xf32>, tensor<8x8xf32>, tensor<8x32xf32>, tensor<32x32xf32>, tensor<16xi64>) { %%0 = stablehlo.iota dim = 1 : tensor<16x8xf32> %%k = stablehlo.constant dense<0.03> : tensor<16x8xf32> %%x = stablehlo.multiply %%0, %%k : tensor<16x8xf32> %%1 = stablehlo.iota dim = 0 : tensor<8x8xf32> %%u = stablehlo.cosine %%1 : tensor<8x8xf32> %%2 = stablehlo.iota dim = 1 : tensor<8x32xf32> %%w = stablehlo.sine %%2 : tensor<8x32xf32> %%3 = stablehlo.iota dim = 1 : tensor<32x32xf32> %%v = stablehlo.cosine %%3 : tensor<32x32xf32> %%t = stablehlo.constant dense<[3, -100, 31, 0, 16, 15, 7, -100, 1, 2, 20, 30, 11, 12, 13, 14]> : tensor<16xi64> return %%x, %%u, %%w, %%v, %%t : tensor<16x8xf32>, tensor<8x8xf32>, tensor<8x32xf32>, tensor<32x32xf32>, tensor<16xi64> }' >%t/gen.mlir
// run: otrn eval %t/gen.mlir --output=%t/in >%t/log; in=%t/in/result_0.npy,%t/in/result_1.npy,%t/in/result_2.npy,%t/in/result_3.npy,%t/in/result_4.npy; otrn run %s --input=$in --output=%t/a && otrn run %s --disable-pass=picks,sooner,simplify --input=$in --output=%t/b && for i in 0 1 2; do cmp %t/a/result_$i.npy %t/b/result_$i.npy || exit 1; done
// expect: result 0: tensor<f32>: 
module attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["dp"=2, "tp"=2]>
  func.func public @main(%x: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"dp"}, {}]>},
                         %u: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"tp"}]>},
                         %w: tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"tp"}, {}]>},
                         %v: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"tp"}]>},
                         %t: tensor<16xi64> {sdy.sharding = #sdy.sharding<@mesh, [{"dp"}]>})
      -> (tensor<f32>, tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"tp"}]>}, tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"dp"}, {}]>}) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %nothing = stablehlo.constant dense<0> : tensor<i64>
    %a = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %b = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x32xf32>) -> tensor<16x32xf32>
    %h = stablehlo.tanh %b : tensor<16x32xf32>
    %s = stablehlo.dot_general %h, %v, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
    %max = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<16x32xf32>, tensor<f32>) -> tensor<16xf32>
    %maxes = stablehlo.broadcast_in_dim %max, dims = [0] : (tensor<16xf32>) -> tensor<16x32xf32>
    %less = stablehlo.subtract %s, %maxes : tensor<16x32xf32>
    %exp = stablehlo.exponential %less : tensor<16x32xf32>
    %sum = stablehlo.reduce(%exp init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<16x32xf32>, tensor<f32>) -> tensor<16xf32>
    %log = stablehlo.log %sum : tensor<16xf32>
    %logs = stablehlo.broadcast_in_dim %log, dims = [0] : (tensor<16xf32>) -> tensor<16x32xf32>
    %lsm = stablehlo.subtract %less, %logs : tensor<16x32xf32>
    %ignored = stablehlo.constant dense<-100> : tensor<16xi64>
    %counts = stablehlo.compare NE, %t, %ignored, SIGNED : (tensor<16xi64>, tensor<16xi64>) -> tensor<16xi1>
    %nought = stablehlo.constant dense<0> : tensor<16xi64>
    %kept = stablehlo.select %counts, %t, %nought : tensor<16xi1>, tensor<16xi64>
    %narrow = stablehlo.convert %kept : (tensor<16xi64>) -> tensor<16xi32>
    %at = stablehlo.reshape %narrow : (tensor<16xi32>) -> tensor<16x1x1xi32>
    %picked = "stablehlo.gather"(%lsm, %at) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<16x32xf32>, tensor<16x1x1xi32>) -> tensor<16x1xf32>
    %flat = stablehlo.reshape %picked : (tensor<16x1xf32>) -> tensor<16xf32>
    %minus = stablehlo.negate %flat : tensor<16xf32>
    %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %each = stablehlo.select %counts, %minus, %zeros : tensor<16xi1>, tensor<16xf32>
    %wide = stablehlo.convert %counts : (tensor<16xi1>) -> tensor<16xi64>
    %number = stablehlo.reduce(%wide init: %nothing) applies stablehlo.add across dimensions = [0] : (tensor<16xi64>, tensor<i64>) -> tensor<i64>
    %n = stablehlo.convert %number : (tensor<i64>) -> tensor<f32>
    %total = stablehlo.reduce(%each init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %loss = stablehlo.divide %total, %n : tensor<f32>
    %share = stablehlo.divide %one, %n : tensor<f32>
    %empty = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %down = stablehlo.constant dense<-1.0> : tensor<16x1xf32>
    %hot = "stablehlo.scatter"(%empty, %at, %down) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      stablehlo.return %q : tensor<f32>
    }) : (tensor<16x32xf32>, tensor<16x1x1xi32>, tensor<16x1xf32>) -> tensor<16x32xf32>
    %shares = stablehlo.broadcast_in_dim %share, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %back = stablehlo.select %counts, %shares, %zeros : tensor<16xi1>, tensor<16xf32>
    %backs = stablehlo.broadcast_in_dim %back, dims = [0] : (tensor<16xf32>) -> tensor<16x32xf32>
    %g = stablehlo.multiply %hot, %backs : tensor<16x32xf32>
    %soft = stablehlo.exponential %lsm : tensor<16x32xf32>
    %row = stablehlo.reduce(%g init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<16x32xf32>, tensor<f32>) -> tensor<16xf32>
    %rows = stablehlo.broadcast_in_dim %row, dims = [0] : (tensor<16xf32>) -> tensor<16x32xf32>
    %part = stablehlo.multiply %soft, %rows : tensor<16x32xf32>
    %ds = stablehlo.subtract %g, %part : tensor<16x32xf32>
    %dv = stablehlo.dot_general %h, %ds, contracting_dims = [0] x [0] : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<32x32xf32>
    %dh = stablehlo.dot_general %ds, %v, contracting_dims = [1] x [1] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
    %db = stablehlo.multiply %dh, %h : tensor<16x32xf32>
    return %loss, %dv, %db : tensor<f32>, tensor<32x32xf32>, tensor<16x32xf32>
  }
}
