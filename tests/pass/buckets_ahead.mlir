// A gather of what is there from the start stands before the products that it can run beside, not right before its reader; what moves its operand
// goes with it. What a sum's operand is converted by comes right behind what it is made of, however late it is written; results are gathered as one.
// run: otrn compile %s --dump=buckets --target=trn1 -o %t/out.otrn | grep -oE '[a-z_]+"[(][^)]*[)]' | grep -E 'all_g|reduce_s|dot_g' | sed 's/[%%][0-9]*/%%/g'
// expect: dot_general"(%arg0, %arg1)
// expect: reduce_scatter"(%)
// expect: dot_general"(%, %arg1)
// expect: all_gather"(%)
// expect: dot_general"(%, %arg1)
// expect: dot_general"(%, %)
// expect: all_gather"(%, %)
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%x: tensor<2048x2048xbf16>, %w: tensor<2048x2048xbf16>, %part: tensor<1024x2048xbf16>) -> (tensor<2048x2048xbf16>, tensor<2097152xf32>, tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %flat = stablehlo.reshape %part : (tensor<1024x2048xbf16>) -> tensor<1x2097152xbf16>
    %3 = "stablehlo.all_gather"(%flat) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<1x2097152xbf16>) -> tensor<2x2097152xbf16>
    %4 = stablehlo.reshape %3 : (tensor<2x2097152xbf16>) -> tensor<2048x2048xbf16>
    %5 = stablehlo.dot_general %2, %4, contracting_dims = [1] x [0] : (tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<2048x2048xbf16>
    %6 = stablehlo.convert %0 : (tensor<2048x2048xbf16>) -> tensor<2048x2048xf32>
    %7 = stablehlo.reshape %6 : (tensor<2048x2048xf32>) -> tensor<4194304xf32>
    %8 = "stablehlo.reduce_scatter"(%7) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4194304xf32>) -> tensor<2097152xf32>
    %9 = stablehlo.dot_general %part, %5, contracting_dims = [1] x [0] : (tensor<1024x2048xbf16>, tensor<2048x2048xbf16>) -> tensor<1024x2048xbf16>
    %10 = "stablehlo.all_gather"(%9) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<1024x2048xbf16>) -> tensor<2048x2048xbf16>
    %11 = stablehlo.cosine %9 : tensor<1024x2048xbf16>
    %12 = "stablehlo.all_gather"(%11) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<1024x2048xbf16>) -> tensor<2048x2048xbf16>
    return %5, %8, %10, %12 : tensor<2048x2048xbf16>, tensor<2097152xf32>, tensor<2048x2048xbf16>, tensor<2048x2048xbf16>
  }
}
