func.func @main(%v0: tensor<424x361xf32> {tf.aliasing_output = 0 : i32}, %v1: tensor<424x361xf32>, %v2: tensor<361x361xf32>, %v3: tensor<361x361xf32>) -> (tensor<424x361xf32>, tensor<1805x72xf32>, tensor<768x16xf32>, tensor<424x361xbf16>, tensor<361x424xf32>, tensor<768x768xf32>) {
  %v4 = stablehlo.abs %v3 : tensor<361x361xf32>
  %v5 = stablehlo.slice %v4 [0:361, 0:360] : (tensor<361x361xf32>) -> tensor<361x360xf32>
  %v6 = stablehlo.reshape %v5 : (tensor<361x360xf32>) -> tensor<361x3x120xf32>
  %v7 = stablehlo.transpose %v6, dims = [1, 0, 2] : (tensor<361x3x120xf32>) -> tensor<3x361x120xf32>
  %v8 = stablehlo.dot_general %v7, %v7, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<3x361x120xf32>, tensor<3x361x120xf32>) -> tensor<3x361x361xf32>
  %v9 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %v10 = stablehlo.constant dense<0.0> : tensor<f32>
  %v11 = stablehlo.reduce(%v8 init: %v9) applies stablehlo.maximum across dimensions = [2] : (tensor<3x361x361xf32>, tensor<f32>) -> tensor<3x361xf32>
  %v12 = stablehlo.broadcast_in_dim %v11, dims = [0, 1] : (tensor<3x361xf32>) -> tensor<3x361x361xf32>
  %v13 = stablehlo.subtract %v8, %v12 : tensor<3x361x361xf32>
  %v14 = stablehlo.exponential %v13 : tensor<3x361x361xf32>
  %v15 = stablehlo.reduce(%v14 init: %v10) applies stablehlo.add across dimensions = [2] : (tensor<3x361x361xf32>, tensor<f32>) -> tensor<3x361xf32>
  %v16 = stablehlo.broadcast_in_dim %v15, dims = [0, 1] : (tensor<3x361xf32>) -> tensor<3x361x361xf32>
  %v17 = stablehlo.divide %v14, %v16 : tensor<3x361x361xf32>
  %v18 = stablehlo.dot_general %v17, %v7, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x361x361xf32>, tensor<3x361x120xf32>) -> tensor<3x361x120xf32>
  %v19 = stablehlo.reshape %v18 : (tensor<3x361x120xf32>) -> tensor<1083x120xf32>
  %v20 = stablehlo.dot_general %v19, %v19, contracting_dims = [1] x [1] : (tensor<1083x120xf32>, tensor<1083x120xf32>) -> tensor<1083x1083xf32>
  %v21 = stablehlo.constant dense<0.00833333> : tensor<1083x1083xf32>
  %v22 = stablehlo.multiply %v20, %v21 : tensor<1083x1083xf32>
  %v23 = "stablehlo.all_reduce"(%v1) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<424x361xf32>) -> tensor<424x361xf32>
  %v24 = stablehlo.dot_general %v2, %v23, contracting_dims = [1] x [1] : (tensor<361x361xf32>, tensor<424x361xf32>) -> tensor<361x424xf32>
  %v25 = stablehlo.constant dense<0.00277008> : tensor<361x424xf32>
  %v26 = stablehlo.multiply %v24, %v25 : tensor<361x424xf32>
  %v27 = stablehlo.convert %v23 : (tensor<424x361xf32>) -> tensor<424x361xbf16>
  %v28 = "stablehlo.collective_permute"(%v2) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : (tensor<361x361xf32>) -> tensor<361x361xf32>
  %v29 = stablehlo.subtract %v2, %v28 : tensor<361x361xf32>
  %v30 = stablehlo.dot_general %v26, %v26, contracting_dims = [0] x [0] : (tensor<361x424xf32>, tensor<361x424xf32>) -> tensor<424x424xf32>
  %v31 = stablehlo.constant dense<0.00277008> : tensor<424x424xf32>
  %v32 = stablehlo.multiply %v30, %v31 : tensor<424x424xf32>
  %v33 = stablehlo.dot_general %v0, %v23, contracting_dims = [0] x [0] : (tensor<424x361xf32>, tensor<424x361xf32>) -> tensor<361x361xf32>
  %v34 = stablehlo.constant dense<0.00235849> : tensor<361x361xf32>
  %v35 = stablehlo.multiply %v33, %v34 : tensor<361x361xf32>
  %v36 = stablehlo.reshape %v1 : (tensor<424x361xf32>) -> tensor<153064xf32>
  %v37 = stablehlo.slice %v36 [0:12288] : (tensor<153064xf32>) -> tensor<12288xf32>
  %v38 = stablehlo.reshape %v37 : (tensor<12288xf32>) -> tensor<4x24x8x16xf32>
  %v39 = stablehlo.constant dense<0.125> : tensor<3x3x16x16xf32>
  %v40 = stablehlo.convolution(%v38, %v39) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x24x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<4x24x8x16xf32>
  %v41 = stablehlo.reshape %v40 : (tensor<4x24x8x16xf32>) -> tensor<768x16xf32>
  %v42 = "stablehlo.collective_permute"(%v26) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : (tensor<361x424xf32>) -> tensor<361x424xf32>
  %v43 = stablehlo.subtract %v26, %v42 : tensor<361x424xf32>
  %v44 = stablehlo.dot_general %v41, %v41, contracting_dims = [1] x [1] : (tensor<768x16xf32>, tensor<768x16xf32>) -> tensor<768x768xf32>
  %v45 = stablehlo.constant dense<0.0625> : tensor<768x768xf32>
  %v46 = stablehlo.multiply %v44, %v45 : tensor<768x768xf32>
  %v47 = stablehlo.dot_general %v2, %v43, contracting_dims = [0] x [0] : (tensor<361x361xf32>, tensor<361x424xf32>) -> tensor<361x424xf32>
  %v48 = stablehlo.constant dense<0.00277008> : tensor<361x424xf32>
  %v49 = stablehlo.multiply %v47, %v48 : tensor<361x424xf32>
  %v50 = "stablehlo.all_reduce"(%v27) ({
    ^bb0(%x: tensor<bf16>, %y: tensor<bf16>):
      %s = stablehlo.maximum %x, %y : tensor<bf16>
      stablehlo.return %s : tensor<bf16>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<424x361xbf16>) -> tensor<424x361xbf16>
  %v51 = stablehlo.reshape %v23 : (tensor<424x361xf32>) -> tensor<153064xf32>
  %v52 = stablehlo.slice %v51 [0:12288] : (tensor<153064xf32>) -> tensor<12288xf32>
  %v53 = stablehlo.reshape %v52 : (tensor<12288xf32>) -> tensor<4x24x8x16xf32>
  %v54 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %v55 = "stablehlo.reduce_window"(%v53, %v54) <{padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 1, 1, 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) : (tensor<4x24x8x16xf32>, tensor<f32>) -> tensor<4x24x8x16xf32>
  %v56 = stablehlo.reshape %v55 : (tensor<4x24x8x16xf32>) -> tensor<768x16xf32>
  %v57 = stablehlo.slice %v2 [0:361, 0:360] : (tensor<361x361xf32>) -> tensor<361x360xf32>
  %v58 = stablehlo.reshape %v57 : (tensor<361x360xf32>) -> tensor<361x5x72xf32>
  %v59 = stablehlo.transpose %v58, dims = [1, 0, 2] : (tensor<361x5x72xf32>) -> tensor<5x361x72xf32>
  %v60 = stablehlo.dot_general %v59, %v59, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<5x361x72xf32>, tensor<5x361x72xf32>) -> tensor<5x361x361xf32>
  %v61 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %v62 = stablehlo.constant dense<0.0> : tensor<f32>
  %v63 = stablehlo.reduce(%v60 init: %v61) applies stablehlo.maximum across dimensions = [2] : (tensor<5x361x361xf32>, tensor<f32>) -> tensor<5x361xf32>
  %v64 = stablehlo.broadcast_in_dim %v63, dims = [0, 1] : (tensor<5x361xf32>) -> tensor<5x361x361xf32>
  %v65 = stablehlo.subtract %v60, %v64 : tensor<5x361x361xf32>
  %v66 = stablehlo.exponential %v65 : tensor<5x361x361xf32>
  %v67 = stablehlo.reduce(%v66 init: %v62) applies stablehlo.add across dimensions = [2] : (tensor<5x361x361xf32>, tensor<f32>) -> tensor<5x361xf32>
  %v68 = stablehlo.broadcast_in_dim %v67, dims = [0, 1] : (tensor<5x361xf32>) -> tensor<5x361x361xf32>
  %v69 = stablehlo.divide %v66, %v68 : tensor<5x361x361xf32>
  %v70 = stablehlo.dot_general %v69, %v59, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<5x361x361xf32>, tensor<5x361x72xf32>) -> tensor<5x361x72xf32>
  %v71 = stablehlo.reshape %v70 : (tensor<5x361x72xf32>) -> tensor<1805x72xf32>
  %v72 = stablehlo.multiply %v0, %v1 : tensor<424x361xf32>
  return %v72, %v71, %v56, %v50, %v49, %v46 : tensor<424x361xf32>, tensor<1805x72xf32>, tensor<768x16xf32>, tensor<424x361xbf16>, tensor<361x424xf32>, tensor<768x768xf32>
}
