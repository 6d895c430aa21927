func.func @main(%v0: tensor<173x232xf32> {tf.aliasing_output = 0 : i32}, %v1: tensor<173x232xf32>, %v2: tensor<232x173xf32>, %v3: tensor<232x232xf32>) -> (tensor<173x232xf32>, tensor<173x232xf32>, tensor<232x232xf32>, tensor<173x232xf32>, tensor<173x232xf32>, tensor<232x232xf32>) {
  %v4 = stablehlo.dot_general %v3, %v3, contracting_dims = [1] x [0] : (tensor<232x232xf32>, tensor<232x232xf32>) -> tensor<232x232xf32>
  %v5 = stablehlo.constant dense<0.00431034> : tensor<232x232xf32>
  %v6 = stablehlo.multiply %v4, %v5 : tensor<232x232xf32>
  %v7 = stablehlo.slice %v2 [0:232, 0:172] : (tensor<232x173xf32>) -> tensor<232x172xf32>
  %v8 = stablehlo.reshape %v7 : (tensor<232x172xf32>) -> tensor<232x2x86xf32>
  %v9 = stablehlo.transpose %v8, dims = [1, 0, 2] : (tensor<232x2x86xf32>) -> tensor<2x232x86xf32>
  %v10 = stablehlo.dot_general %v9, %v9, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x232x86xf32>, tensor<2x232x86xf32>) -> tensor<2x232x232xf32>
  %v11 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %v12 = stablehlo.constant dense<0.0> : tensor<f32>
  %v13 = stablehlo.reduce(%v10 init: %v11) applies stablehlo.maximum across dimensions = [2] : (tensor<2x232x232xf32>, tensor<f32>) -> tensor<2x232xf32>
  %v14 = stablehlo.broadcast_in_dim %v13, dims = [0, 1] : (tensor<2x232xf32>) -> tensor<2x232x232xf32>
  %v15 = stablehlo.subtract %v10, %v14 : tensor<2x232x232xf32>
  %v16 = stablehlo.exponential %v15 : tensor<2x232x232xf32>
  %v17 = stablehlo.reduce(%v16 init: %v12) applies stablehlo.add across dimensions = [2] : (tensor<2x232x232xf32>, tensor<f32>) -> tensor<2x232xf32>
  %v18 = stablehlo.broadcast_in_dim %v17, dims = [0, 1] : (tensor<2x232xf32>) -> tensor<2x232x232xf32>
  %v19 = stablehlo.divide %v16, %v18 : tensor<2x232x232xf32>
  %v20 = stablehlo.dot_general %v19, %v9, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x232x232xf32>, tensor<2x232x86xf32>) -> tensor<2x232x86xf32>
  %v21 = stablehlo.reshape %v20 : (tensor<2x232x86xf32>) -> tensor<464x86xf32>
  %v22 = stablehlo.dot_general %v1, %v3, contracting_dims = [1] x [1] : (tensor<173x232xf32>, tensor<232x232xf32>) -> tensor<173x232xf32>
  %v23 = stablehlo.constant dense<0.00431034> : tensor<173x232xf32>
  %v24 = stablehlo.multiply %v22, %v23 : tensor<173x232xf32>
  %v25 = "stablehlo.all_reduce"(%v1) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<173x232xf32>) -> tensor<173x232xf32>
  %v26 = stablehlo.reshape %v21 : (tensor<464x86xf32>) -> tensor<39904xf32>
  %v27 = stablehlo.slice %v26 [0:12288] : (tensor<39904xf32>) -> tensor<12288xf32>
  %v28 = stablehlo.reshape %v27 : (tensor<12288xf32>) -> tensor<4x24x8x16xf32>
  %v29 = stablehlo.constant dense<0.125> : tensor<3x3x16x16xf32>
  %v30 = stablehlo.convolution(%v28, %v29) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x24x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<4x24x8x16xf32>
  %v31 = stablehlo.reshape %v30 : (tensor<4x24x8x16xf32>) -> tensor<768x16xf32>
  %v32 = stablehlo.dot_general %v1, %v25, contracting_dims = [0] x [0] : (tensor<173x232xf32>, tensor<173x232xf32>) -> tensor<232x232xf32>
  %v33 = stablehlo.constant dense<0.00578035> : tensor<232x232xf32>
  %v34 = stablehlo.multiply %v32, %v33 : tensor<232x232xf32>
  %v35 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %v36 = stablehlo.reduce(%v31 init: %v35) applies stablehlo.maximum across dimensions = [0] : (tensor<768x16xf32>, tensor<f32>) -> tensor<16xf32>
  %v37 = stablehlo.broadcast_in_dim %v36, dims = [1] : (tensor<16xf32>) -> tensor<768x16xf32>
  %v38 = stablehlo.subtract %v31, %v37 : tensor<768x16xf32>
  %v39 = "stablehlo.all_reduce"(%v31) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<768x16xf32>) -> tensor<768x16xf32>
  %v40 = stablehlo.constant dense<0.0> : tensor<f32>
  %v41 = stablehlo.reduce(%v1 init: %v40) applies stablehlo.add across dimensions = [0] : (tensor<173x232xf32>, tensor<f32>) -> tensor<232xf32>
  %v42 = stablehlo.broadcast_in_dim %v41, dims = [1] : (tensor<232xf32>) -> tensor<173x232xf32>
  %v43 = stablehlo.add %v1, %v42 : tensor<173x232xf32>
  %v44 = stablehlo.constant dense<0.0> : tensor<f32>
  %v45 = stablehlo.reduce(%v24 init: %v44) applies stablehlo.add across dimensions = [1] : (tensor<173x232xf32>, tensor<f32>) -> tensor<173xf32>
  %v46 = stablehlo.broadcast_in_dim %v45, dims = [0] : (tensor<173xf32>) -> tensor<173x232xf32>
  %v47 = stablehlo.add %v24, %v46 : tensor<173x232xf32>
  %v48 = stablehlo.logistic %v39 : tensor<768x16xf32>
  %v49 = "stablehlo.all_reduce"(%v47) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<173x232xf32>) -> tensor<173x232xf32>
  %v50 = stablehlo.add %v1, %v25 : tensor<173x232xf32>
  %v51 = stablehlo.maximum %v3, %v34 : tensor<232x232xf32>
  %v52 = stablehlo.add %v25, %v50 : tensor<173x232xf32>
  %v53 = "stablehlo.all_reduce"(%v43) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<173x232xf32>) -> tensor<173x232xf32>
  %v54 = stablehlo.maximum %v51, %v34 : tensor<232x232xf32>
  %v55 = stablehlo.subtract %v47, %v53 : tensor<173x232xf32>
  %v56 = stablehlo.multiply %v0, %v1 : tensor<173x232xf32>
  return %v56, %v55, %v54, %v53, %v52, %v51 : tensor<173x232xf32>, tensor<173x232xf32>, tensor<232x232xf32>, tensor<173x232xf32>, tensor<173x232xf32>, tensor<232x232xf32>
}
