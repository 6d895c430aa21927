func.func @main(%v0: tensor<149x302xf32> {tf.aliasing_output = 0 : i32}, %v1: tensor<149x302xf32>, %v2: tensor<302x302xf32>, %v3: tensor<302x149xf32>) -> (tensor<149x302xf32>, tensor<302x149xf32>, tensor<149x302xf32>, tensor<302x149xf32>, tensor<768x16xf32>, tensor<302x149xf32>) {
  %v4 = stablehlo.convert %v3 : (tensor<302x149xf32>) -> tensor<302x149xbf16>
  %v5 = stablehlo.logistic %v0 : tensor<149x302xf32>
  %v6 = stablehlo.logistic %v5 : tensor<149x302xf32>
  %v7 = "stablehlo.all_reduce"(%v6) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<149x302xf32>) -> tensor<149x302xf32>
  %v8 = stablehlo.dot_general %v1, %v7, contracting_dims = [0] x [0] : (tensor<149x302xf32>, tensor<149x302xf32>) -> tensor<302x302xf32>
  %v9 = stablehlo.constant dense<0.00671141> : tensor<302x302xf32>
  %v10 = stablehlo.multiply %v8, %v9 : tensor<302x302xf32>
  %v11 = stablehlo.subtract %v1, %v7 : tensor<149x302xf32>
  %v12 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %v13 = stablehlo.reduce(%v11 init: %v12) applies stablehlo.maximum across dimensions = [0] : (tensor<149x302xf32>, tensor<f32>) -> tensor<302xf32>
  %v14 = stablehlo.broadcast_in_dim %v13, dims = [1] : (tensor<302xf32>) -> tensor<149x302xf32>
  %v15 = stablehlo.subtract %v11, %v14 : tensor<149x302xf32>
  %v16 = "stablehlo.collective_permute"(%v5) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : (tensor<149x302xf32>) -> tensor<149x302xf32>
  %v17 = stablehlo.subtract %v5, %v16 : tensor<149x302xf32>
  %v18 = stablehlo.dot_general %v3, %v17, contracting_dims = [1] x [0] : (tensor<302x149xf32>, tensor<149x302xf32>) -> tensor<302x302xf32>
  %v19 = stablehlo.constant dense<0.00671141> : tensor<302x302xf32>
  %v20 = stablehlo.multiply %v18, %v19 : tensor<302x302xf32>
  %v21 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %v22 = stablehlo.reduce(%v15 init: %v21) applies stablehlo.maximum across dimensions = [0] : (tensor<149x302xf32>, tensor<f32>) -> tensor<302xf32>
  %v23 = stablehlo.broadcast_in_dim %v22, dims = [1] : (tensor<302xf32>) -> tensor<149x302xf32>
  %v24 = stablehlo.subtract %v15, %v23 : tensor<149x302xf32>
  %v25 = stablehlo.subtract %v20, %v2 : tensor<302x302xf32>
  %v26 = "stablehlo.all_reduce"(%v5) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<149x302xf32>) -> tensor<149x302xf32>
  %v27 = stablehlo.reshape %v1 : (tensor<149x302xf32>) -> tensor<44998xf32>
  %v28 = stablehlo.slice %v27 [0:12288] : (tensor<44998xf32>) -> tensor<12288xf32>
  %v29 = stablehlo.reshape %v28 : (tensor<12288xf32>) -> tensor<4x24x8x16xf32>
  %v30 = stablehlo.constant dense<0.125> : tensor<3x3x16x16xf32>
  %v31 = stablehlo.convolution(%v29, %v30) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x24x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<4x24x8x16xf32>
  %v32 = stablehlo.reshape %v31 : (tensor<4x24x8x16xf32>) -> tensor<768x16xf32>
  %v33 = stablehlo.logistic %v3 : tensor<302x149xf32>
  %v34 = stablehlo.reshape %v1 : (tensor<149x302xf32>) -> tensor<44998xf32>
  %v35 = stablehlo.slice %v34 [0:12288] : (tensor<44998xf32>) -> tensor<12288xf32>
  %v36 = stablehlo.reshape %v35 : (tensor<12288xf32>) -> tensor<4x24x8x16xf32>
  %v37 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %v38 = "stablehlo.reduce_window"(%v36, %v37) <{padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 1, 1, 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) : (tensor<4x24x8x16xf32>, tensor<f32>) -> tensor<4x24x8x16xf32>
  %v39 = stablehlo.reshape %v38 : (tensor<4x24x8x16xf32>) -> tensor<768x16xf32>
  %v40 = "stablehlo.collective_permute"(%v33) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>} : (tensor<302x149xf32>) -> tensor<302x149xf32>
  %v41 = stablehlo.subtract %v33, %v40 : tensor<302x149xf32>
  %v42 = stablehlo.maximum %v1, %v17 : tensor<149x302xf32>
  %v43 = stablehlo.dot_general %v2, %v41, contracting_dims = [1] x [0] : (tensor<302x302xf32>, tensor<302x149xf32>) -> tensor<302x149xf32>
  %v44 = stablehlo.constant dense<0.00331126> : tensor<302x149xf32>
  %v45 = stablehlo.multiply %v43, %v44 : tensor<302x149xf32>
  %v46 = stablehlo.multiply %v0, %v1 : tensor<149x302xf32>
  return %v46, %v45, %v42, %v41, %v39, %v33 : tensor<149x302xf32>, tensor<302x149xf32>, tensor<149x302xf32>, tensor<302x149xf32>, tensor<768x16xf32>, tensor<302x149xf32>
}
