// Shapes of LAPACK's calls that do not fit each other.
// run: printf 'func.func @main(%%%%a: tensor<2x3xf32>) -> tensor<2x3xf32> { %%%%l, %%%%i = stablehlo.custom_call @lapack_spotrf_ffi(%%%%a) : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<i32>) return %%%%l : tensor<2x3xf32> }' >%t/a.mlir; otrn compile %t/a.mlir; test $? = 1
// expect: a.mlir:1:
// expect: error[VERIFY]: stablehlo.custom_call: @lapack_spotrf_ffi of shapes that do not fit each other
// run: printf 'func.func @main(%%%%a: tensor<2x2xf32>, %%%%b: tensor<3x2xf32>) -> tensor<3x2xf32> { %%%%x = stablehlo.custom_call @lapack_strsm_ffi(%%%%a, %%%%b) : (tensor<2x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32> return %%%%x : tensor<3x2xf32> }' >%t/b.mlir; otrn compile %t/b.mlir; test $? = 1
// expect: error[VERIFY]: stablehlo.custom_call: @lapack_strsm_ffi of shapes that do not fit each other
// run: printf 'func.func @main(%%%%a: tensor<2x2xf32>) -> tensor<3xi32> { %%%%l, %%%%p, %%%%i = stablehlo.custom_call @lapack_sgetrf_ffi(%%%%a) : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<3xi32>, tensor<i32>) return %%%%p : tensor<3xi32> }' >%t/c.mlir; otrn compile %t/c.mlir; test $? = 1
// expect: of shapes that do not fit each other
