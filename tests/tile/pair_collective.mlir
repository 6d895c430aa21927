// A collective of the first core takes longer than the rounds behind it: their meetings do not wait for it, only the one behind which the other core
// reads what it made, which has nothing else behind it.
// run: otrn compile %s -o %t/a.otrn && otrn dis %t/a.otrn | grep core_barrier | sed 's/.*q12.*/waits for it/; s/.*core_barrier.*/does not/' | head -4 | tr '\n' ';'
// expect: does not;does not;does not;waits for it;
// run: otrn eval %S/data/pair_collective_gen.mlir --output=%t/in >%t/log; IN=%t/in/result_0.npy,%t/in/result_1.npy; for o in --lnc=2 --lnc=1 --check; do otrn run %s $o --input=$IN --output=%t/o$o >%t/log || exit 1; done; for i in 0 1 2 3; do for o in --lnc=1 --check; do cmp %t/o--lnc=2/result_$i.npy %t/o$o/result_$i.npy || exit 1; done; done; echo same bits
// expect: same bits
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%a: tensor<1024x1024xbf16>, %b: tensor<1024x1024xbf16>) -> (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>, tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) {
    %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
    %r:2 = "stablehlo.all_reduce"(%p, %a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%x: tensor<bf16>, %y: tensor<bf16>):
      %s = stablehlo.add %x, %y : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }) : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>)
    %0 = stablehlo.dot_general %a, %p, contracting_dims = [1] x [0] : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
    %1 = stablehlo.dot_general %a, %0, contracting_dims = [1] x [0] : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
    %2 = stablehlo.dot_general %a, %1, contracting_dims = [1] x [0] : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
    %3 = stablehlo.dot_general %2, %r#0, contracting_dims = [1] x [0] : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
    return %3, %r#0, %r#1, %p : tensor<1024x1024xbf16>, tensor<1024x1024xbf16>, tensor<1024x1024xbf16>, tensor<1024x1024xbf16>
  }
}
