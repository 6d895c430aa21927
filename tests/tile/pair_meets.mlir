// A sum over devices of what both cores made needs a meeting and nothing else. The products behind it need none, and would all go first; the links would stand idle.
// run: otrn compile %s --target=trn2 --lnc=2 --dump=placed -o %t/out.otrn | grep '^#'
// expect: # 1 kernel all_reduce:
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%x: tensor<2048x1024xbf16>, %w: tensor<1024x1024xbf16>) -> (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>, tensor<2048x1024xbf16>) {
    %0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<2048x1024xbf16>, tensor<2048x1024xbf16>) -> tensor<1024x1024xbf16>
    %1:2 = "stablehlo.all_reduce"(%0, %0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
      %s = stablehlo.add %a, %b : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }) : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>)
    %p0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2048x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<2048x1024xbf16>
    %p1 = stablehlo.dot_general %p0, %w, contracting_dims = [1] x [0] : (tensor<2048x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<2048x1024xbf16>
    %p2 = stablehlo.dot_general %p1, %w, contracting_dims = [1] x [0] : (tensor<2048x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<2048x1024xbf16>
    %p3 = stablehlo.dot_general %p2, %w, contracting_dims = [1] x [0] : (tensor<2048x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<2048x1024xbf16>
    %p4 = stablehlo.dot_general %p3, %w, contracting_dims = [1] x [0] : (tensor<2048x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<2048x1024xbf16>
    %p5 = stablehlo.dot_general %p4, %w, contracting_dims = [1] x [0] : (tensor<2048x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<2048x1024xbf16>
    %p6 = stablehlo.dot_general %p5, %w, contracting_dims = [1] x [0] : (tensor<2048x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<2048x1024xbf16>
    %p7 = stablehlo.dot_general %p6, %w, contracting_dims = [1] x [0] : (tensor<2048x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<2048x1024xbf16>
    return %1#0, %1#1, %p7 : tensor<1024x1024xbf16>, tensor<1024x1024xbf16>, tensor<2048x1024xbf16>
  }
}
