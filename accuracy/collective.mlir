// SPDX-License-Identifier: Apache-2.0
// collective.mlir — one collective of RANKS devices over N elements of TYPE; accuracy.py fills the
// capitals in and takes the function named by the row.
func.func @all_reduce(%x: tensor<Nx!TYPE>) -> tensor<Nx!TYPE> {
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<GROUP> : tensor<1xRANKSxi64>}> ({
  ^bb0(%a: tensor<!TYPE>, %b: tensor<!TYPE>):
    %s = stablehlo.add %a, %b : tensor<!TYPE>
    stablehlo.return %s : tensor<!TYPE>
  }) : (tensor<Nx!TYPE>) -> tensor<Nx!TYPE>
  return %0 : tensor<Nx!TYPE>
}
func.func @all_gather(%x: tensor<PARTx!TYPE>) -> tensor<Nx!TYPE> {
  %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<GROUP> : tensor<1xRANKSxi64>}> : (tensor<PARTx!TYPE>) -> tensor<Nx!TYPE>
  return %0 : tensor<Nx!TYPE>
}
func.func @reduce_scatter(%x: tensor<Nx!TYPE>) -> tensor<PARTx!TYPE> {
  %0 = "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 0 : i64, replica_groups = dense<GROUP> : tensor<1xRANKSxi64>}> ({
  ^bb0(%a: tensor<!TYPE>, %b: tensor<!TYPE>):
    %s = stablehlo.add %a, %b : tensor<!TYPE>
    stablehlo.return %s : tensor<!TYPE>
  }) : (tensor<Nx!TYPE>) -> tensor<PARTx!TYPE>
  return %0 : tensor<PARTx!TYPE>
}
func.func @all_to_all(%x: tensor<Nx!TYPE>) -> tensor<Nx!TYPE> {
  %0 = "stablehlo.all_to_all"(%x) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = RANKS : i64, replica_groups = dense<GROUP> : tensor<1xRANKSxi64>}> : (tensor<Nx!TYPE>) -> tensor<Nx!TYPE>
  return %0 : tensor<Nx!TYPE>
}
