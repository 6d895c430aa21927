// Four devices, two by two, of two cores each. The sum over neighbours goes right behind its product, whose rows both cores go on with; the sum of what needs all rows,
// along the other axis and before it in the program, waits for a meeting: collectives of different streams keep no order.
// run: otrn compile %s --target=trn2 --lnc=2 --dump=placed -o %t/out.otrn | grep '^#'
// expect: # 1 dot dot_general: %6 %3 -> %8
// expect: # 2 kernel all_reduce: %8 -> %9
// Without its devices in its name the program is one rank's, and others have programs of their own: both sums stay in order.
// run: sed 's/ attributes {mhlo.num_partitions = 4 : i32}//' %s >%t/rank.mlir && otrn compile %t/rank.mlir --target=trn2 --lnc=2 --dump=placed -o %t/out.otrn | grep all_reduce
// expect: # 3 kernel all_reduce: %7 -> %4
// expect: # 4 kernel all_reduce: %8 -> %9
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func public @main(%x: tensor<8192x1024xbf16>, %w: tensor<1024x1024xbf16>, %v: tensor<1024x1024xbf16>) -> (tensor<1024x1024xbf16>, tensor<8192x1024xbf16>) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8192x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<8192x1024xbf16>
    %1 = stablehlo.dot_general %0, %0, contracting_dims = [0] x [0] : (tensor<8192x1024xbf16>, tensor<8192x1024xbf16>) -> tensor<1024x1024xbf16>
    %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
      %s = stablehlo.add %a, %b : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }) : (tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
    %3 = stablehlo.dot_general %0, %v, contracting_dims = [1] x [0] : (tensor<8192x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<8192x1024xbf16>
    %4 = "stablehlo.all_reduce"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
      %s = stablehlo.add %a, %b : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }) : (tensor<8192x1024xbf16>) -> tensor<8192x1024xbf16>
    %5 = stablehlo.dot_general %4, %w, contracting_dims = [1] x [0] : (tensor<8192x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<8192x1024xbf16>
    return %2, %5 : tensor<1024x1024xbf16>, tensor<8192x1024xbf16>
  }
}
