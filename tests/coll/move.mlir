// Movement on a 2 x 2 grid, each op with groups that name partitions, replicas or devices; dynamic roots; messages
// along pairs; arguments of main that are used before and behind the devices.
// run: otrn eval %s
// run: otrn run --cache=off %s
module {
  func.func @f(%a: tensor<2x2xi16>, %root: tensor<1xi32>)
      -> (tensor<2x4xi16>, tensor<1x4xi16>, tensor<2x2xi16>, tensor<2x2xi16>, tensor<2x2xi16>, tensor<2x2xi16>) {
    %g = "stablehlo.all_gather"(%a) {all_gather_dim = 1 : i64, replica_groups = dense<[[0, 3], [2, 1]]> : tensor<2x2xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids}
      : (tensor<2x2xi16>) -> tensor<2x4xi16>
    %t = "stablehlo.all_to_all"(%a) {split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64,
        replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 2, type = 0>}
      : (tensor<2x2xi16>) -> tensor<1x4xi16>
    %b = "stablehlo.collective_broadcast"(%a, %root) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, has_dynamic_root}
      : (tensor<2x2xi16>, tensor<1xi32>) -> tensor<2x2xi16>
    %p = "stablehlo.collective_permute"(%a) {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 3, type = 0>} : (tensor<2x2xi16>) -> tensor<2x2xi16>
    %s = "stablehlo.collective_reduce"(%a, %root) ({
      ^bb0(%x: tensor<i16>, %y: tensor<i16>):
        %m = stablehlo.subtract %x, %y : tensor<i16>
        stablehlo.return %m : tensor<i16>
    }) {replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>, has_dynamic_root} : (tensor<2x2xi16>, tensor<1xi32>) -> tensor<2x2xi16>
    %0 = stablehlo.create_token : !stablehlo.token
    %1 = "stablehlo.send"(%a, %0) {channel_handle = #stablehlo.channel_handle<handle = 9, type = 1>,
        source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : (tensor<2x2xi16>, !stablehlo.token) -> !stablehlo.token
    %2:2 = "stablehlo.recv"(%0) {channel_handle = #stablehlo.channel_handle<handle = 9, type = 1>,
        source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : (!stablehlo.token) -> (tensor<2x2xi16>, !stablehlo.token)
    return %g, %t, %b, %p, %s, %2#0
      : tensor<2x4xi16>, tensor<1x4xi16>, tensor<2x2xi16>, tensor<2x2xi16>, tensor<2x2xi16>, tensor<2x2xi16>
  }
  func.func @main() {
    %0 = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi16>
    %ten = stablehlo.constant dense<10> : tensor<2x2xi16>
    %1 = stablehlo.add %0, %ten : tensor<2x2xi16>
    %2 = stablehlo.add %1, %ten : tensor<2x2xi16>
    %3 = stablehlo.add %2, %ten : tensor<2x2xi16>
    %first = stablehlo.constant dense<0> : tensor<1xi32>
    %second = stablehlo.constant dense<1> : tensor<1xi32>
    %r:24 = "interpreter.run_parallel"(%0, %first, %1, %second, %2, %first, %3, %second) {programs = [[@f, @f], [@f, @f]]}
      : (tensor<2x2xi16>, tensor<1xi32>, tensor<2x2xi16>, tensor<1xi32>, tensor<2x2xi16>, tensor<1xi32>, tensor<2x2xi16>, tensor<1xi32>)
      -> (tensor<2x4xi16>, tensor<1x4xi16>, tensor<2x2xi16>, tensor<2x2xi16>, tensor<2x2xi16>, tensor<2x2xi16>,
          tensor<2x4xi16>, tensor<1x4xi16>, tensor<2x2xi16>, tensor<2x2xi16>, tensor<2x2xi16>, tensor<2x2xi16>,
          tensor<2x4xi16>, tensor<1x4xi16>, tensor<2x2xi16>, tensor<2x2xi16>, tensor<2x2xi16>, tensor<2x2xi16>,
          tensor<2x4xi16>, tensor<1x4xi16>, tensor<2x2xi16>, tensor<2x2xi16>, tensor<2x2xi16>, tensor<2x2xi16>)
    check.expect_eq_const %r#0, dense<[[1, 2, 31, 32], [3, 4, 33, 34]]> : tensor<2x4xi16>
    check.expect_eq_const %r#6, dense<[[21, 22, 11, 12], [23, 24, 13, 14]]> : tensor<2x4xi16>
    check.expect_eq_const %r#1, dense<[[13, 14, 3, 4]]> : tensor<1x4xi16>
    check.expect_eq_const %r#7, dense<[[11, 12, 1, 2]]> : tensor<1x4xi16>
    check.expect_eq %r#2, %0 : tensor<2x2xi16>
    check.expect_eq %r#8, %3 : tensor<2x2xi16>
    check.expect_eq %r#14, %0 : tensor<2x2xi16>
    check.expect_eq_const %r#3, dense<0> : tensor<2x2xi16>
    check.expect_eq %r#9, %0 : tensor<2x2xi16>
    check.expect_eq %r#21, %2 : tensor<2x2xi16>
    check.expect_eq_const %r#4, dense<0> : tensor<2x2xi16>
    check.expect_eq_const %r#16, dense<20> : tensor<2x2xi16>
    check.expect_eq_const %r#10, dense<20> : tensor<2x2xi16>
    check.expect_eq_const %r#22, dense<0> : tensor<2x2xi16>
    check.expect_eq %r#5, %1 : tensor<2x2xi16>
    check.expect_eq %r#11, %0 : tensor<2x2xi16>
    check.expect_eq %r#17, %3 : tensor<2x2xi16>
    return
  }
}
