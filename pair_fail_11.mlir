func.func @main(%v0: tensor<400x292xf32> {tf.aliasing_output = 0 : i32}, %v1: tensor<400x292xf32>, %v2: tensor<292x400xf32>, %v3: tensor<292x400xf32>) -> (tensor<400x292xf32>, tensor<768x16xf32>, tensor<400x292xf32>, tensor<292x400xf32>, tensor<768x16xf32>, tensor<768x16xf32>) {
  %v4 = stablehlo.constant dense<1.5> : tensor<f32>
  %v5 = stablehlo.pad %v3, %v4, low = [30, 2], high = [7, 3], interior = [0, 0] : (tensor<292x400xf32>, tensor<f32>) -> tensor<329x405xf32>
  %v6 = stablehlo.logistic %v5 : tensor<329x405xf32>
  %v7 = stablehlo.add %v0, %v1 : tensor<400x292xf32>
  %v8 = "stablehlo.collective_permute"(%v7) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : (tensor<400x292xf32>) -> tensor<400x292xf32>
  %v9 = stablehlo.subtract %v7, %v8 : tensor<400x292xf32>
  %v10 = stablehlo.dot_general %v1, %v9, contracting_dims = [0] x [0] : (tensor<400x292xf32>, tensor<400x292xf32>) -> tensor<292x292xf32>
  %v11 = stablehlo.constant dense<0.0025> : tensor<292x292xf32>
  %v12 = stablehlo.multiply %v10, %v11 : tensor<292x292xf32>
  %v13 = stablehlo.constant dense<0.0> : tensor<f32>
  %v14 = stablehlo.reduce(%v2 init: %v13) applies stablehlo.add across dimensions = [1] : (tensor<292x400xf32>, tensor<f32>) -> tensor<292xf32>
  %v15 = stablehlo.broadcast_in_dim %v14, dims = [0] : (tensor<292xf32>) -> tensor<292x400xf32>
  %v16 = stablehlo.add %v2, %v15 : tensor<292x400xf32>
  %v17 = stablehlo.dot_general %v6, %v6, contracting_dims = [1] x [1] : (tensor<329x405xf32>, tensor<329x405xf32>) -> tensor<329x329xf32>
  %v18 = stablehlo.constant dense<0.00246914> : tensor<329x329xf32>
  %v19 = stablehlo.multiply %v17, %v18 : tensor<329x329xf32>
  %v20 = "stablehlo.all_reduce"(%v5) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<329x405xf32>) -> tensor<329x405xf32>
  %v21 = stablehlo.slice %v2 [0:292, 0:400] : (tensor<292x400xf32>) -> tensor<292x400xf32>
  %v22 = stablehlo.reshape %v21 : (tensor<292x400xf32>) -> tensor<292x4x100xf32>
  %v23 = stablehlo.transpose %v22, dims = [1, 0, 2] : (tensor<292x4x100xf32>) -> tensor<4x292x100xf32>
  %v24 = stablehlo.dot_general %v23, %v23, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x292x100xf32>, tensor<4x292x100xf32>) -> tensor<4x292x292xf32>
  %v25 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %v26 = stablehlo.constant dense<0.0> : tensor<f32>
  %v27 = stablehlo.reduce(%v24 init: %v25) applies stablehlo.maximum across dimensions = [2] : (tensor<4x292x292xf32>, tensor<f32>) -> tensor<4x292xf32>
  %v28 = stablehlo.broadcast_in_dim %v27, dims = [0, 1] : (tensor<4x292xf32>) -> tensor<4x292x292xf32>
  %v29 = stablehlo.subtract %v24, %v28 : tensor<4x292x292xf32>
  %v30 = stablehlo.exponential %v29 : tensor<4x292x292xf32>
  %v31 = stablehlo.reduce(%v30 init: %v26) applies stablehlo.add across dimensions = [2] : (tensor<4x292x292xf32>, tensor<f32>) -> tensor<4x292xf32>
  %v32 = stablehlo.broadcast_in_dim %v31, dims = [0, 1] : (tensor<4x292xf32>) -> tensor<4x292x292xf32>
  %v33 = stablehlo.divide %v30, %v32 : tensor<4x292x292xf32>
  %v34 = stablehlo.dot_general %v33, %v23, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x292x292xf32>, tensor<4x292x100xf32>) -> tensor<4x292x100xf32>
  %v35 = stablehlo.reshape %v34 : (tensor<4x292x100xf32>) -> tensor<1168x100xf32>
  %v36 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %v37 = stablehlo.reduce(%v16 init: %v36) applies stablehlo.maximum across dimensions = [1] : (tensor<292x400xf32>, tensor<f32>) -> tensor<292xf32>
  %v38 = stablehlo.broadcast_in_dim %v37, dims = [0] : (tensor<292xf32>) -> tensor<292x400xf32>
  %v39 = stablehlo.subtract %v16, %v38 : tensor<292x400xf32>
  %v40 = "stablehlo.collective_permute"(%v6) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : (tensor<329x405xf32>) -> tensor<329x405xf32>
  %v41 = stablehlo.subtract %v6, %v40 : tensor<329x405xf32>
  %v42 = stablehlo.dot_general %v20, %v41, contracting_dims = [0] x [0] : (tensor<329x405xf32>, tensor<329x405xf32>) -> tensor<405x405xf32>
  %v43 = stablehlo.constant dense<0.00303951> : tensor<405x405xf32>
  %v44 = stablehlo.multiply %v42, %v43 : tensor<405x405xf32>
  %v45 = stablehlo.reshape %v41 : (tensor<329x405xf32>) -> tensor<133245xf32>
  %v46 = stablehlo.slice %v45 [0:12288] : (tensor<133245xf32>) -> tensor<12288xf32>
  %v47 = stablehlo.reshape %v46 : (tensor<12288xf32>) -> tensor<4x24x8x16xf32>
  %v48 = stablehlo.constant dense<0.125> : tensor<3x3x16x16xf32>
  %v49 = stablehlo.convolution(%v47, %v48) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x24x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<4x24x8x16xf32>
  %v50 = stablehlo.reshape %v49 : (tensor<4x24x8x16xf32>) -> tensor<768x16xf32>
  %v51 = stablehlo.reshape %v6 : (tensor<329x405xf32>) -> tensor<133245xf32>
  %v52 = stablehlo.slice %v51 [0:12288] : (tensor<133245xf32>) -> tensor<12288xf32>
  %v53 = stablehlo.reshape %v52 : (tensor<12288xf32>) -> tensor<4x24x8x16xf32>
  %v54 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %v55 = "stablehlo.reduce_window"(%v53, %v54) <{padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 1, 1, 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) : (tensor<4x24x8x16xf32>, tensor<f32>) -> tensor<4x24x8x16xf32>
  %v56 = stablehlo.reshape %v55 : (tensor<4x24x8x16xf32>) -> tensor<768x16xf32>
  %v57 = "stablehlo.collective_permute"(%v39) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : (tensor<292x400xf32>) -> tensor<292x400xf32>
  %v58 = stablehlo.subtract %v39, %v57 : tensor<292x400xf32>
  %v59 = stablehlo.tanh %v9 : tensor<400x292xf32>
  %v60 = stablehlo.tanh %v50 : tensor<768x16xf32>
  %v61 = stablehlo.multiply %v0, %v1 : tensor<400x292xf32>
  return %v61, %v60, %v59, %v58, %v56, %v50 : tensor<400x292xf32>, tensor<768x16xf32>, tensor<400x292xf32>, tensor<292x400xf32>, tensor<768x16xf32>, tensor<768x16xf32>
}
