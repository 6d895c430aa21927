func.func @main(%v0: tensor<274x242xf32> {tf.aliasing_output = 0 : i32}, %v1: tensor<274x242xf32>, %v2: tensor<242x242xf32>, %v3: tensor<242x242xf32>) -> (tensor<274x242xf32>, tensor<768x16xf32>, tensor<242x274xf32>, tensor<242x242xf32>, tensor<768x16xf32>, tensor<274x242xbf16>) {
  %v4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %v5 = stablehlo.reduce(%v3 init: %v4) applies stablehlo.maximum across dimensions = [0] : (tensor<242x242xf32>, tensor<f32>) -> tensor<242xf32>
  %v6 = stablehlo.broadcast_in_dim %v5, dims = [1] : (tensor<242xf32>) -> tensor<242x242xf32>
  %v7 = stablehlo.subtract %v3, %v6 : tensor<242x242xf32>
  %v8 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %v9 = stablehlo.reduce(%v2 init: %v8) applies stablehlo.maximum across dimensions = [1] : (tensor<242x242xf32>, tensor<f32>) -> tensor<242xf32>
  %v10 = stablehlo.broadcast_in_dim %v9, dims = [0] : (tensor<242xf32>) -> tensor<242x242xf32>
  %v11 = stablehlo.subtract %v2, %v10 : tensor<242x242xf32>
  %v12 = stablehlo.dot_general %v11, %v11, contracting_dims = [1] x [0] : (tensor<242x242xf32>, tensor<242x242xf32>) -> tensor<242x242xf32>
  %v13 = stablehlo.constant dense<0.00413223> : tensor<242x242xf32>
  %v14 = stablehlo.multiply %v12, %v13 : tensor<242x242xf32>
  %v15 = "stablehlo.all_reduce"(%v3) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<242x242xf32>) -> tensor<242x242xf32>
  %v16 = stablehlo.reshape %v15 : (tensor<242x242xf32>) -> tensor<58564xf32>
  %v17 = stablehlo.slice %v16 [0:12288] : (tensor<58564xf32>) -> tensor<12288xf32>
  %v18 = stablehlo.reshape %v17 : (tensor<12288xf32>) -> tensor<4x24x8x16xf32>
  %v19 = stablehlo.constant dense<0.125> : tensor<3x3x16x16xf32>
  %v20 = stablehlo.convolution(%v18, %v19) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x24x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<4x24x8x16xf32>
  %v21 = stablehlo.reshape %v20 : (tensor<4x24x8x16xf32>) -> tensor<768x16xf32>
  %v22 = stablehlo.dot_general %v7, %v15, contracting_dims = [1] x [0] : (tensor<242x242xf32>, tensor<242x242xf32>) -> tensor<242x242xf32>
  %v23 = stablehlo.constant dense<0.00413223> : tensor<242x242xf32>
  %v24 = stablehlo.multiply %v22, %v23 : tensor<242x242xf32>
  %v25 = stablehlo.dot_general %v11, %v24, contracting_dims = [1] x [0] : (tensor<242x242xf32>, tensor<242x242xf32>) -> tensor<242x242xf32>
  %v26 = stablehlo.constant dense<0.00413223> : tensor<242x242xf32>
  %v27 = stablehlo.multiply %v25, %v26 : tensor<242x242xf32>
  %v28 = "stablehlo.collective_permute"(%v2) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : (tensor<242x242xf32>) -> tensor<242x242xf32>
  %v29 = stablehlo.subtract %v2, %v28 : tensor<242x242xf32>
  %v30 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %v31 = stablehlo.reduce(%v1 init: %v30) applies stablehlo.maximum across dimensions = [0] : (tensor<274x242xf32>, tensor<f32>) -> tensor<242xf32>
  %v32 = stablehlo.broadcast_in_dim %v31, dims = [1] : (tensor<242xf32>) -> tensor<274x242xf32>
  %v33 = stablehlo.subtract %v1, %v32 : tensor<274x242xf32>
  %v34 = stablehlo.dot_general %v11, %v29, contracting_dims = [1] x [0] : (tensor<242x242xf32>, tensor<242x242xf32>) -> tensor<242x242xf32>
  %v35 = stablehlo.constant dense<0.00413223> : tensor<242x242xf32>
  %v36 = stablehlo.multiply %v34, %v35 : tensor<242x242xf32>
  %v37 = stablehlo.constant dense<0.0> : tensor<f32>
  %v38 = stablehlo.reduce(%v33 init: %v37) applies stablehlo.add across dimensions = [1] : (tensor<274x242xf32>, tensor<f32>) -> tensor<274xf32>
  %v39 = stablehlo.broadcast_in_dim %v38, dims = [0] : (tensor<274xf32>) -> tensor<274x242xf32>
  %v40 = stablehlo.add %v33, %v39 : tensor<274x242xf32>
  %v41 = "stablehlo.collective_permute"(%v3) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : (tensor<242x242xf32>) -> tensor<242x242xf32>
  %v42 = stablehlo.subtract %v3, %v41 : tensor<242x242xf32>
  %v43 = stablehlo.reshape %v21 : (tensor<768x16xf32>) -> tensor<12288xf32>
  %v44 = stablehlo.slice %v43 [0:12288] : (tensor<12288xf32>) -> tensor<12288xf32>
  %v45 = stablehlo.reshape %v44 : (tensor<12288xf32>) -> tensor<4x24x8x16xf32>
  %v46 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %v47 = "stablehlo.reduce_window"(%v45, %v46) <{padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 1, 1, 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) : (tensor<4x24x8x16xf32>, tensor<f32>) -> tensor<4x24x8x16xf32>
  %v48 = stablehlo.reshape %v47 : (tensor<4x24x8x16xf32>) -> tensor<768x16xf32>
  %v49 = stablehlo.convert %v40 : (tensor<274x242xf32>) -> tensor<274x242xbf16>
  %v50 = stablehlo.reshape %v0 : (tensor<274x242xf32>) -> tensor<66308xf32>
  %v51 = stablehlo.slice %v50 [0:12288] : (tensor<66308xf32>) -> tensor<12288xf32>
  %v52 = stablehlo.reshape %v51 : (tensor<12288xf32>) -> tensor<4x24x8x16xf32>
  %v53 = stablehlo.constant dense<0.125> : tensor<3x3x16x16xf32>
  %v54 = stablehlo.convolution(%v52, %v53) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x24x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<4x24x8x16xf32>
  %v55 = stablehlo.reshape %v54 : (tensor<4x24x8x16xf32>) -> tensor<768x16xf32>
  %v56 = "stablehlo.collective_permute"(%v7) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : (tensor<242x242xf32>) -> tensor<242x242xf32>
  %v57 = stablehlo.subtract %v7, %v56 : tensor<242x242xf32>
  %v58 = stablehlo.transpose %v33, dims = [1, 0] : (tensor<274x242xf32>) -> tensor<242x274xf32>
  %v59 = stablehlo.subtract %v21, %v55 : tensor<768x16xf32>
  %v60 = stablehlo.multiply %v0, %v1 : tensor<274x242xf32>
  return %v60, %v59, %v58, %v57, %v55, %v49 : tensor<274x242xf32>, tensor<768x16xf32>, tensor<242x274xf32>, tensor<242x242xf32>, tensor<768x16xf32>, tensor<274x242xbf16>
}
