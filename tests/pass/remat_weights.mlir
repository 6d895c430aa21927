// A scan of attention with dropout and its gradient: the weights behind dropout are no stack. Stored, they would be read again by the product that else
// takes them where they are made; made again they are one instruction, which draws, scales with the softmax's sum, chooses and rounds.
// run: for c in trn2 trn3; do otrn compile %s --lnc=1 --target=$c --dump=remat | grep -c 'dynamic_update_slice.*3x96x197x197xbf16'; done; echo end
// expect: 0
// expect: 0
// expect: end
// run: otrn compile %s --lnc=1 --target=trn2 --dump=nest
// expect: block rows
// expect: block rows
// expect-not: dot dot_general
module @jit_loss attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<96x197x64xf32>, %arg1: tensor<3x4xui32>) -> (tensor<96x197x64xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %0 = call @_where(%cst) : (tensor<bf16>) -> tensor<96x197x197xbf16>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<bf16>) -> tensor<3x96x197x64xbf16>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<3x96x197x197xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<3x96x197x1xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<3x96x197x1xf32>
    %c = stablehlo.constant dense<false> : tensor<i1>
    %5 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<3x96x197x197xi1>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %6 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<bf16>) -> tensor<3x96x197x197xbf16>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %7:10 = stablehlo.while(%iterArg = %arg1, %iterArg_8 = %0, %iterArg_9 = %c_5, %iterArg_10 = %arg0, %iterArg_11 = %1, %iterArg_12 = %2, %iterArg_13 = %3, %iterArg_14 = %4, %iterArg_15 = %5, %iterArg_16 = %6) : tensor<3x4xui32>, tensor<96x197x197xbf16>, tensor<i32>, tensor<96x197x64xf32>, tensor<3x96x197x64xbf16>, tensor<3x96x197x197xf32>, tensor<3x96x197x1xf32>, tensor<3x96x197x1xf32>, tensor<3x96x197x197xi1>, tensor<3x96x197x197xbf16>
    cond {
      %c_17 = stablehlo.constant dense<3> : tensor<i32>
      %10 = stablehlo.compare LT, %iterArg_9, %c_17, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    } do {
      %10 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_9) : (tensor<3x4xui32>, tensor<i32>) -> tensor<4xui32>
      %11:7 = func.call @closed_call(%iterArg_8, %iterArg_10, %10) : (tensor<96x197x197xbf16>, tensor<96x197x64xf32>, tensor<4xui32>) -> (tensor<96x197x64xf32>, tensor<96x197x64xbf16>, tensor<96x197x197xf32>, tensor<96x197x1xf32>, tensor<96x197x1xf32>, tensor<96x197x197xi1>, tensor<96x197x197xbf16>)
      %12 = func.call @dynamic_update_index_in_dim(%iterArg_11, %11#1, %iterArg_9) : (tensor<3x96x197x64xbf16>, tensor<96x197x64xbf16>, tensor<i32>) -> tensor<3x96x197x64xbf16>
      %13 = func.call @dynamic_update_index_in_dim_1(%iterArg_12, %11#2, %iterArg_9) : (tensor<3x96x197x197xf32>, tensor<96x197x197xf32>, tensor<i32>) -> tensor<3x96x197x197xf32>
      %14 = func.call @dynamic_update_index_in_dim_2(%iterArg_13, %11#3, %iterArg_9) : (tensor<3x96x197x1xf32>, tensor<96x197x1xf32>, tensor<i32>) -> tensor<3x96x197x1xf32>
      %15 = func.call @dynamic_update_index_in_dim_2(%iterArg_14, %11#4, %iterArg_9) : (tensor<3x96x197x1xf32>, tensor<96x197x1xf32>, tensor<i32>) -> tensor<3x96x197x1xf32>
      %16 = func.call @dynamic_update_index_in_dim_3(%iterArg_15, %11#5, %iterArg_9) : (tensor<3x96x197x197xi1>, tensor<96x197x197xi1>, tensor<i32>) -> tensor<3x96x197x197xi1>
      %17 = func.call @dynamic_update_index_in_dim_4(%iterArg_16, %11#6, %iterArg_9) : (tensor<3x96x197x197xbf16>, tensor<96x197x197xbf16>, tensor<i32>) -> tensor<3x96x197x197xbf16>
      %c_17 = stablehlo.constant dense<1> : tensor<i32>
      %18 = stablehlo.add %iterArg_9, %c_17 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_8, %18, %11#0, %12, %13, %14, %15, %16, %17 : tensor<3x4xui32>, tensor<96x197x197xbf16>, tensor<i32>, tensor<96x197x64xf32>, tensor<3x96x197x64xbf16>, tensor<3x96x197x197xf32>, tensor<3x96x197x1xf32>, tensor<3x96x197x1xf32>, tensor<3x96x197x197xi1>, tensor<3x96x197x197xbf16>
    }
    %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<96x197x64xf32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %9:8 = stablehlo.while(%iterArg = %7#4, %iterArg_8 = %7#5, %iterArg_9 = %7#6, %iterArg_10 = %7#7, %iterArg_11 = %7#8, %iterArg_12 = %7#9, %iterArg_13 = %c_7, %iterArg_14 = %8) : tensor<3x96x197x64xbf16>, tensor<3x96x197x197xf32>, tensor<3x96x197x1xf32>, tensor<3x96x197x1xf32>, tensor<3x96x197x197xi1>, tensor<3x96x197x197xbf16>, tensor<i32>, tensor<96x197x64xf32>
    cond {
      %c_15 = stablehlo.constant dense<3> : tensor<i32>
      %10 = stablehlo.compare LT, %iterArg_13, %c_15, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    } do {
      %c_15 = stablehlo.constant dense<3> : tensor<i32>
      %10 = stablehlo.subtract %c_15, %iterArg_13 : tensor<i32>
      %c_16 = stablehlo.constant dense<1> : tensor<i32>
      %11 = stablehlo.subtract %10, %c_16 : tensor<i32>
      %12 = func.call @dynamic_index_in_dim_5(%iterArg, %11) : (tensor<3x96x197x64xbf16>, tensor<i32>) -> tensor<96x197x64xbf16>
      %13 = func.call @dynamic_index_in_dim_6(%iterArg_8, %11) : (tensor<3x96x197x197xf32>, tensor<i32>) -> tensor<96x197x197xf32>
      %14 = func.call @dynamic_index_in_dim_7(%iterArg_9, %11) : (tensor<3x96x197x1xf32>, tensor<i32>) -> tensor<96x197x1xf32>
      %15 = func.call @dynamic_index_in_dim_7(%iterArg_10, %11) : (tensor<3x96x197x1xf32>, tensor<i32>) -> tensor<96x197x1xf32>
      %16 = func.call @dynamic_index_in_dim_8(%iterArg_11, %11) : (tensor<3x96x197x197xi1>, tensor<i32>) -> tensor<96x197x197xi1>
      %17 = func.call @dynamic_index_in_dim_9(%iterArg_12, %11) : (tensor<3x96x197x197xbf16>, tensor<i32>) -> tensor<96x197x197xbf16>
      %18 = func.call @closed_call_10(%iterArg_14, %12, %13, %14, %15, %16, %17) : (tensor<96x197x64xf32>, tensor<96x197x64xbf16>, tensor<96x197x197xf32>, tensor<96x197x1xf32>, tensor<96x197x1xf32>, tensor<96x197x197xi1>, tensor<96x197x197xbf16>) -> tensor<96x197x64xf32>
      %c_17 = stablehlo.constant dense<1> : tensor<i32>
      %19 = stablehlo.add %iterArg_13, %c_17 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_8, %iterArg_9, %iterArg_10, %iterArg_11, %iterArg_12, %19, %18 : tensor<3x96x197x64xbf16>, tensor<3x96x197x197xf32>, tensor<3x96x197x1xf32>, tensor<3x96x197x1xf32>, tensor<3x96x197x197xi1>, tensor<3x96x197x197xbf16>, tensor<i32>, tensor<96x197x64xf32>
    }
    return %9#7 : tensor<96x197x64xf32>
  }
  func.func private @_where(%arg0: tensor<bf16>) -> tensor<96x197x197xbf16> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<bf16>) -> tensor<96x197x197xbf16>
    return %0 : tensor<96x197x197xbf16>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<3x4xui32>, %arg1: tensor<i32>) -> tensor<4xui32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 4] : (tensor<3x4xui32>, tensor<i32>, tensor<i32>) -> tensor<1x4xui32>
    %1 = stablehlo.reshape %0 : (tensor<1x4xui32>) -> tensor<4xui32>
    return %1 : tensor<4xui32>
  }
  func.func private @closed_call(%arg0: tensor<96x197x197xbf16>, %arg1: tensor<96x197x64xf32>, %arg2: tensor<4xui32>) -> (tensor<96x197x64xf32>, tensor<96x197x64xbf16>, tensor<96x197x197xf32>, tensor<96x197x1xf32>, tensor<96x197x1xf32>, tensor<96x197x197xi1>, tensor<96x197x197xbf16>) {
    %0 = stablehlo.convert %arg1 : (tensor<96x197x64xf32>) -> tensor<96x197x64xbf16>
    %1 = stablehlo.dot_general %0, %0, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<96x197x64xbf16>, tensor<96x197x64xbf16>) -> tensor<96x197x197xbf16>
    %2 = stablehlo.convert %1 : (tensor<96x197x197xbf16>) -> tensor<96x197x197xf32>
    %cst = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<96x197x197xf32>
    %4 = stablehlo.divide %2, %3 : tensor<96x197x197xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %5 = stablehlo.reduce(%4 init: %cst_0) applies stablehlo.maximum across dimensions = [2] : (tensor<96x197x197xf32>, tensor<f32>) -> tensor<96x197xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<96x197xf32>) -> tensor<96x197x1xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1, 2] : (tensor<96x197x1xf32>) -> tensor<96x197x197xf32>
    %8 = stablehlo.subtract %4, %7 : tensor<96x197x197xf32>
    %9 = stablehlo.exponential %8 : tensor<96x197x197xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.reduce(%9 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<96x197x197xf32>, tensor<f32>) -> tensor<96x197xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<96x197xf32>) -> tensor<96x197x1xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2] : (tensor<96x197x1xf32>) -> tensor<96x197x197xf32>
    %13 = stablehlo.divide %9, %12 : tensor<96x197x197xf32>
    %14 = stablehlo.multiply %11, %11 : tensor<96x197x1xf32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<96x197x1xf32>
    %16 = stablehlo.divide %15, %14 : tensor<96x197x1xf32>
    %17 = stablehlo.convert %13 : (tensor<96x197x197xf32>) -> tensor<96x197x197xbf16>
    %18 = stablehlo.reshape %arg2 : (tensor<4xui32>) -> tensor<2x2xui32>
    %19 = stablehlo.bitcast_convert %18 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state, %output = stablehlo.rng_bit_generator %19, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<96x197x197xui32>)
    %20 = stablehlo.bitcast_convert %output_state : (tensor<2xui64>) -> tensor<2x2xui32>
    %21 = stablehlo.reshape %20 : (tensor<2x2xui32>) -> tensor<4xui32>
    %c = stablehlo.constant dense<3865470566> : tensor<ui32>
    %22 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui32>) -> tensor<96x197x197xui32>
    %23 = stablehlo.compare LT, %output, %22, UNSIGNED : (tensor<96x197x197xui32>, tensor<96x197x197xui32>) -> tensor<96x197x197xi1>
    %cst_3 = stablehlo.constant dense<8.984370e-01> : tensor<bf16>
    %24 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<bf16>) -> tensor<96x197x197xbf16>
    %25 = stablehlo.divide %17, %24 : tensor<96x197x197xbf16>
    %26 = call @_where_0(%23, %25, %arg0) : (tensor<96x197x197xi1>, tensor<96x197x197xbf16>, tensor<96x197x197xbf16>) -> tensor<96x197x197xbf16>
    %27 = stablehlo.dot_general %26, %0, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<96x197x197xbf16>, tensor<96x197x64xbf16>) -> tensor<96x197x64xbf16>
    %28 = stablehlo.convert %27 : (tensor<96x197x64xbf16>) -> tensor<96x197x64xf32>
    %29 = stablehlo.add %arg1, %28 : tensor<96x197x64xf32>
    return %29, %0, %9, %11, %16, %23, %26 : tensor<96x197x64xf32>, tensor<96x197x64xbf16>, tensor<96x197x197xf32>, tensor<96x197x1xf32>, tensor<96x197x1xf32>, tensor<96x197x197xi1>, tensor<96x197x197xbf16>
  }
  func.func private @_where_0(%arg0: tensor<96x197x197xi1>, %arg1: tensor<96x197x197xbf16>, %arg2: tensor<96x197x197xbf16>) -> tensor<96x197x197xbf16> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<96x197x197xi1>, tensor<96x197x197xbf16>
    return %0 : tensor<96x197x197xbf16>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<3x96x197x64xbf16>, %arg1: tensor<96x197x64xbf16>, %arg2: tensor<i32>) -> tensor<3x96x197x64xbf16> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<96x197x64xbf16>) -> tensor<1x96x197x64xbf16>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<3x96x197x64xbf16>, tensor<1x96x197x64xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x96x197x64xbf16>
    return %1 : tensor<3x96x197x64xbf16>
  }
  func.func private @dynamic_update_index_in_dim_1(%arg0: tensor<3x96x197x197xf32>, %arg1: tensor<96x197x197xf32>, %arg2: tensor<i32>) -> tensor<3x96x197x197xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<96x197x197xf32>) -> tensor<1x96x197x197xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<3x96x197x197xf32>, tensor<1x96x197x197xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x96x197x197xf32>
    return %1 : tensor<3x96x197x197xf32>
  }
  func.func private @dynamic_update_index_in_dim_2(%arg0: tensor<3x96x197x1xf32>, %arg1: tensor<96x197x1xf32>, %arg2: tensor<i32>) -> tensor<3x96x197x1xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<96x197x1xf32>) -> tensor<1x96x197x1xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<3x96x197x1xf32>, tensor<1x96x197x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x96x197x1xf32>
    return %1 : tensor<3x96x197x1xf32>
  }
  func.func private @dynamic_update_index_in_dim_3(%arg0: tensor<3x96x197x197xi1>, %arg1: tensor<96x197x197xi1>, %arg2: tensor<i32>) -> tensor<3x96x197x197xi1> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<96x197x197xi1>) -> tensor<1x96x197x197xi1>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<3x96x197x197xi1>, tensor<1x96x197x197xi1>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x96x197x197xi1>
    return %1 : tensor<3x96x197x197xi1>
  }
  func.func private @dynamic_update_index_in_dim_4(%arg0: tensor<3x96x197x197xbf16>, %arg1: tensor<96x197x197xbf16>, %arg2: tensor<i32>) -> tensor<3x96x197x197xbf16> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<96x197x197xbf16>) -> tensor<1x96x197x197xbf16>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<3x96x197x197xbf16>, tensor<1x96x197x197xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x96x197x197xbf16>
    return %1 : tensor<3x96x197x197xbf16>
  }
  func.func private @dynamic_index_in_dim_5(%arg0: tensor<3x96x197x64xbf16>, %arg1: tensor<i32>) -> tensor<96x197x64xbf16> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 96, 197, 64] : (tensor<3x96x197x64xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x96x197x64xbf16>
    %1 = stablehlo.reshape %0 : (tensor<1x96x197x64xbf16>) -> tensor<96x197x64xbf16>
    return %1 : tensor<96x197x64xbf16>
  }
  func.func private @dynamic_index_in_dim_6(%arg0: tensor<3x96x197x197xf32>, %arg1: tensor<i32>) -> tensor<96x197x197xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 96, 197, 197] : (tensor<3x96x197x197xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x96x197x197xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x96x197x197xf32>) -> tensor<96x197x197xf32>
    return %1 : tensor<96x197x197xf32>
  }
  func.func private @dynamic_index_in_dim_7(%arg0: tensor<3x96x197x1xf32>, %arg1: tensor<i32>) -> tensor<96x197x1xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 96, 197, 1] : (tensor<3x96x197x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x96x197x1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x96x197x1xf32>) -> tensor<96x197x1xf32>
    return %1 : tensor<96x197x1xf32>
  }
  func.func private @dynamic_index_in_dim_8(%arg0: tensor<3x96x197x197xi1>, %arg1: tensor<i32>) -> tensor<96x197x197xi1> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 96, 197, 197] : (tensor<3x96x197x197xi1>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x96x197x197xi1>
    %1 = stablehlo.reshape %0 : (tensor<1x96x197x197xi1>) -> tensor<96x197x197xi1>
    return %1 : tensor<96x197x197xi1>
  }
  func.func private @dynamic_index_in_dim_9(%arg0: tensor<3x96x197x197xbf16>, %arg1: tensor<i32>) -> tensor<96x197x197xbf16> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 96, 197, 197] : (tensor<3x96x197x197xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x96x197x197xbf16>
    %1 = stablehlo.reshape %0 : (tensor<1x96x197x197xbf16>) -> tensor<96x197x197xbf16>
    return %1 : tensor<96x197x197xbf16>
  }
  func.func private @closed_call_10(%arg0: tensor<96x197x64xf32>, %arg1: tensor<96x197x64xbf16>, %arg2: tensor<96x197x197xf32>, %arg3: tensor<96x197x1xf32>, %arg4: tensor<96x197x1xf32>, %arg5: tensor<96x197x197xi1>, %arg6: tensor<96x197x197xbf16>) -> tensor<96x197x64xf32> {
    %0 = stablehlo.convert %arg0 : (tensor<96x197x64xf32>) -> tensor<96x197x64xbf16>
    %1 = stablehlo.dot_general %0, %arg6, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<96x197x64xbf16>, tensor<96x197x197xbf16>) -> tensor<96x64x197xbf16>
    %2 = stablehlo.transpose %1, dims = [0, 2, 1] : (tensor<96x64x197xbf16>) -> tensor<96x197x64xbf16>
    %3 = stablehlo.dot_general %0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<96x197x64xbf16>, tensor<96x197x64xbf16>) -> tensor<96x197x197xbf16>
    %4 = call @_where_11(%arg5, %3) : (tensor<96x197x197xi1>, tensor<96x197x197xbf16>) -> tensor<96x197x197xbf16>
    %cst = stablehlo.constant dense<8.984370e-01> : tensor<bf16>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<96x197x197xbf16>
    %6 = stablehlo.divide %4, %5 : tensor<96x197x197xbf16>
    %7 = stablehlo.convert %6 : (tensor<96x197x197xbf16>) -> tensor<96x197x197xf32>
    %8 = stablehlo.broadcast_in_dim %arg4, dims = [0, 1, 2] : (tensor<96x197x1xf32>) -> tensor<96x197x197xf32>
    %9 = stablehlo.multiply %7, %8 : tensor<96x197x197xf32>
    %10 = stablehlo.multiply %9, %arg2 : tensor<96x197x197xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.reduce(%10 init: %cst_0) applies stablehlo.add across dimensions = [2] : (tensor<96x197x197xf32>, tensor<f32>) -> tensor<96x197xf32>
    %12 = stablehlo.reshape %11 : (tensor<96x197xf32>) -> tensor<96x197x1xf32>
    %13 = stablehlo.negate %12 : tensor<96x197x1xf32>
    %14 = stablehlo.broadcast_in_dim %arg3, dims = [0, 1, 2] : (tensor<96x197x1xf32>) -> tensor<96x197x197xf32>
    %15 = stablehlo.divide %7, %14 : tensor<96x197x197xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %16 = stablehlo.reduce(%13 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<96x197x1xf32>, tensor<f32>) -> tensor<96x197xf32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0, 1] : (tensor<96x197xf32>) -> tensor<96x197x197xf32>
    %18 = stablehlo.add %15, %17 : tensor<96x197x197xf32>
    %19 = stablehlo.multiply %18, %arg2 : tensor<96x197x197xf32>
    %cst_2 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<96x197x197xf32>
    %21 = stablehlo.divide %19, %20 : tensor<96x197x197xf32>
    %22 = stablehlo.convert %21 : (tensor<96x197x197xf32>) -> tensor<96x197x197xbf16>
    %23 = stablehlo.dot_general %22, %arg1, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<96x197x197xbf16>, tensor<96x197x64xbf16>) -> tensor<96x197x64xbf16>
    %24 = stablehlo.add %2, %23 : tensor<96x197x64xbf16>
    %25 = stablehlo.dot_general %22, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<96x197x197xbf16>, tensor<96x197x64xbf16>) -> tensor<96x197x64xbf16>
    %26 = stablehlo.add %24, %25 : tensor<96x197x64xbf16>
    %27 = stablehlo.convert %26 : (tensor<96x197x64xbf16>) -> tensor<96x197x64xf32>
    %28 = stablehlo.add %arg0, %27 : tensor<96x197x64xf32>
    return %28 : tensor<96x197x64xf32>
  }
  func.func private @_where_11(%arg0: tensor<96x197x197xi1>, %arg1: tensor<96x197x197xbf16>) -> tensor<96x197x197xbf16> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<bf16>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<96x197x197xbf16>
    %1 = stablehlo.select %arg0, %arg1, %0 : tensor<96x197x197xi1>, tensor<96x197x197xbf16>
    return %1 : tensor<96x197x197xbf16>
  }
}
