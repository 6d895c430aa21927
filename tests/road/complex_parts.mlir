// Large complex tensors by parts (pass/parts.c): products, sums, movement, a loop that carries one, operations that need the whole. The matrix
// products are done by the tensor engine, none by gpsimd; of a real one times a complex one there are two, not four.
// run: otrn compile %s --cache=off --dump=dce -o %t/a.otrn > %t/dce && ! grep -E 'dot_general.*complex' %t/dce && grep -c dot_general %t/dce
// expect: 8
// run: otrn run %t/a.otrn --output=%t/a && otrn eval %s --output=%t/b
// run: otrn eval %S/data/complex_parts_same.mlir --input=%t/a/result_0.npy,%t/a/result_1.npy,%t/a/result_2.npy,%t/a/result_3.npy,%t/a/result_4.npy,%t/a/result_5.npy,%t/a/result_6.npy,%t/a/result_7.npy,%t/a/result_8.npy,%t/a/result_9.npy,%t/a/result_10.npy,%t/b/result_0.npy,%t/b/result_1.npy,%t/b/result_2.npy,%t/b/result_3.npy,%t/b/result_4.npy,%t/b/result_5.npy,%t/b/result_6.npy,%t/b/result_7.npy,%t/b/result_8.npy,%t/b/result_9.npy,%t/b/result_10.npy
module {
  func.func public @main() -> (tensor<96x80xf32>, tensor<80x64xf32>, tensor<96x80xf32>, tensor<192x40xf32>, tensor<40xf32>, tensor<96x80xf32>, tensor<9x80xf32>, tensor<96x80xf32>, tensor<96x80xf32>, tensor<80x64xf32>, tensor<2x80x64xf32>) {
    %0 = stablehlo.iota dim = 0 : tensor<6144xf32>
    %cst = stablehlo.constant dense<3.700000e-01> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<6144xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<6144xf32>
    %3 = stablehlo.sine %2 : tensor<6144xf32>
    %4 = stablehlo.reshape %3 : (tensor<6144xf32>) -> tensor<96x64xf32>
    %cst_0 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<96x64xf32>
    %6 = stablehlo.multiply %4, %5 : tensor<96x64xf32>
    %7 = stablehlo.iota dim = 0 : tensor<6144xf32>
    %cst_1 = stablehlo.constant dense<4.800000e-01> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<6144xf32>
    %9 = stablehlo.multiply %7, %8 : tensor<6144xf32>
    %10 = stablehlo.sine %9 : tensor<6144xf32>
    %11 = stablehlo.reshape %10 : (tensor<6144xf32>) -> tensor<96x64xf32>
    %cst_2 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<96x64xf32>
    %13 = stablehlo.multiply %11, %12 : tensor<96x64xf32>
    %14 = stablehlo.complex %6, %13 : tensor<96x64xcomplex<f32>>
    %15 = stablehlo.iota dim = 0 : tensor<5120xf32>
    %cst_3 = stablehlo.constant dense<5.900000e-01> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<5120xf32>
    %17 = stablehlo.multiply %15, %16 : tensor<5120xf32>
    %18 = stablehlo.sine %17 : tensor<5120xf32>
    %19 = stablehlo.reshape %18 : (tensor<5120xf32>) -> tensor<64x80xf32>
    %cst_4 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<64x80xf32>
    %21 = stablehlo.multiply %19, %20 : tensor<64x80xf32>
    %22 = stablehlo.iota dim = 0 : tensor<5120xf32>
    %cst_5 = stablehlo.constant dense<0.699999988> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<5120xf32>
    %24 = stablehlo.multiply %22, %23 : tensor<5120xf32>
    %25 = stablehlo.sine %24 : tensor<5120xf32>
    %26 = stablehlo.reshape %25 : (tensor<5120xf32>) -> tensor<64x80xf32>
    %cst_6 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<64x80xf32>
    %28 = stablehlo.multiply %26, %27 : tensor<64x80xf32>
    %29 = stablehlo.complex %21, %28 : tensor<64x80xcomplex<f32>>
    %30 = stablehlo.iota dim = 0 : tensor<7680xf32>
    %cst_7 = stablehlo.constant dense<8.100000e-01> : tensor<f32>
    %31 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<7680xf32>
    %32 = stablehlo.multiply %30, %31 : tensor<7680xf32>
    %33 = stablehlo.sine %32 : tensor<7680xf32>
    %34 = stablehlo.reshape %33 : (tensor<7680xf32>) -> tensor<80x96xf32>
    %cst_8 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %35 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<80x96xf32>
    %36 = stablehlo.multiply %34, %35 : tensor<80x96xf32>
    %37 = stablehlo.dot_general %14, %29, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<96x64xcomplex<f32>>, tensor<64x80xcomplex<f32>>) -> tensor<96x80xcomplex<f32>>
    %38 = stablehlo.convert %36 : (tensor<80x96xf32>) -> tensor<80x96xcomplex<f32>>
    %39 = stablehlo.dot_general %38, %14, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<80x96xcomplex<f32>>, tensor<96x64xcomplex<f32>>) -> tensor<80x64xcomplex<f32>>
    %40 = stablehlo.real %37 : (tensor<96x80xcomplex<f32>>) -> tensor<96x80xf32>
    %41 = stablehlo.imag %37 : (tensor<96x80xcomplex<f32>>) -> tensor<96x80xf32>
    %42 = stablehlo.negate %41 : tensor<96x80xf32>
    %43 = stablehlo.complex %40, %42 : tensor<96x80xcomplex<f32>>
    %cst_9 = stablehlo.constant dense<(2.000000e+00,-1.000000e+00)> : tensor<complex<f32>>
    %44 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<complex<f32>>) -> tensor<96x80xcomplex<f32>>
    %45 = stablehlo.multiply %43, %44 : tensor<96x80xcomplex<f32>>
    %cst_10 = stablehlo.constant dense<(1.000000e+00,2.000000e+00)> : tensor<complex<f32>>
    %46 = call @_pad(%37, %cst_10) : (tensor<96x80xcomplex<f32>>, tensor<complex<f32>>) -> tensor<97x80xcomplex<f32>>
    %47 = stablehlo.reverse %45, dims = [0] : tensor<96x80xcomplex<f32>>
    %48 = stablehlo.concatenate %46, %47, dim = 0 : (tensor<97x80xcomplex<f32>>, tensor<96x80xcomplex<f32>>) -> tensor<193x80xcomplex<f32>>
    %49 = stablehlo.slice %48 [1:193, 0:80:2] : (tensor<193x80xcomplex<f32>>) -> tensor<192x40xcomplex<f32>>
    %50 = stablehlo.iota dim = 0 : tensor<7680xf32>
    %cst_11 = stablehlo.constant dense<9.200000e-01> : tensor<f32>
    %51 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<7680xf32>
    %52 = stablehlo.multiply %50, %51 : tensor<7680xf32>
    %53 = stablehlo.sine %52 : tensor<7680xf32>
    %54 = stablehlo.reshape %53 : (tensor<7680xf32>) -> tensor<192x40xf32>
    %cst_12 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %55 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<192x40xf32>
    %56 = stablehlo.multiply %54, %55 : tensor<192x40xf32>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %57 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<192x40xf32>
    %58 = stablehlo.compare GT, %56, %57, FLOAT : (tensor<192x40xf32>, tensor<192x40xf32>) -> tensor<192x40xi1>
    %59 = stablehlo.transpose %49, dims = [1, 0] : (tensor<192x40xcomplex<f32>>) -> tensor<40x192xcomplex<f32>>
    %60 = stablehlo.reshape %59 : (tensor<40x192xcomplex<f32>>) -> tensor<192x40xcomplex<f32>>
    %61 = stablehlo.negate %60 : tensor<192x40xcomplex<f32>>
    %62 = call @_where(%58, %49, %61) : (tensor<192x40xi1>, tensor<192x40xcomplex<f32>>, tensor<192x40xcomplex<f32>>) -> tensor<192x40xcomplex<f32>>
    %cst_14 = stablehlo.constant dense<(0.000000e+00,0.000000e+00)> : tensor<complex<f32>>
    %63 = stablehlo.reduce(%62 init: %cst_14) applies stablehlo.add across dimensions = [0] : (tensor<192x40xcomplex<f32>>, tensor<complex<f32>>) -> tensor<40xcomplex<f32>>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %64:3 = stablehlo.while(%iterArg = %37, %iterArg_34 = %c, %iterArg_35 = %45) : tensor<96x80xcomplex<f32>>, tensor<i32>, tensor<96x80xcomplex<f32>>
    cond {
      %c_36 = stablehlo.constant dense<3> : tensor<i32>
      %144 = stablehlo.compare LT, %iterArg_34, %c_36, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %144 : tensor<i1>
    } do {
      %144 = func.call @closed_call(%iterArg, %iterArg_35) : (tensor<96x80xcomplex<f32>>, tensor<96x80xcomplex<f32>>) -> tensor<96x80xcomplex<f32>>
      %c_36 = stablehlo.constant dense<1> : tensor<i32>
      %145 = stablehlo.add %iterArg_34, %c_36 : tensor<i32>
      stablehlo.return %iterArg, %145, %144 : tensor<96x80xcomplex<f32>>, tensor<i32>, tensor<96x80xcomplex<f32>>
    }
    %65 = stablehlo.slice %64#2 [0:8, 0:80] : (tensor<96x80xcomplex<f32>>) -> tensor<8x80xcomplex<f32>>
    %cst_15 = stablehlo.constant dense<(3.000000e+00,0.000000e+00)> : tensor<complex<f32>>
    %66 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<complex<f32>>) -> tensor<8x80xcomplex<f32>>
    %67 = stablehlo.multiply %65, %66 : tensor<8x80xcomplex<f32>>
    %68 = stablehlo.iota dim = 0 : tensor<8xf32>
    %cst_16 = stablehlo.constant dense<1.030000e+00> : tensor<f32>
    %69 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %70 = stablehlo.multiply %68, %69 : tensor<8xf32>
    %71 = stablehlo.sine %70 : tensor<8xf32>
    %cst_17 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %72 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %73 = stablehlo.multiply %71, %72 : tensor<8xf32>
    %74 = stablehlo.slice %73 [0:1] : (tensor<8xf32>) -> tensor<1xf32>
    %75 = stablehlo.reshape %74 : (tensor<1xf32>) -> tensor<f32>
    %76 = stablehlo.convert %75 : (tensor<f32>) -> tensor<i32>
    %c_18 = stablehlo.constant dense<5> : tensor<i32>
    %77 = stablehlo.add %76, %c_18 : tensor<i32>
    %c_19 = stablehlo.constant dense<0> : tensor<i32>
    %78 = stablehlo.compare LT, %77, %c_19, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_20 = stablehlo.constant dense<96> : tensor<i32>
    %79 = stablehlo.add %77, %c_20 : tensor<i32>
    %80 = stablehlo.select %78, %79, %77 : tensor<i1>, tensor<i32>
    %c_21 = stablehlo.constant dense<0> : tensor<i32>
    %81 = stablehlo.dynamic_update_slice %64#2, %67, %80, %c_21 : (tensor<96x80xcomplex<f32>>, tensor<8x80xcomplex<f32>>, tensor<i32>, tensor<i32>) -> tensor<96x80xcomplex<f32>>
    %82 = stablehlo.iota dim = 0 : tensor<9xf32>
    %cst_22 = stablehlo.constant dense<1.140000e+00> : tensor<f32>
    %83 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<9xf32>
    %84 = stablehlo.multiply %82, %83 : tensor<9xf32>
    %85 = stablehlo.sine %84 : tensor<9xf32>
    %cst_23 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %86 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<9xf32>
    %87 = stablehlo.multiply %85, %86 : tensor<9xf32>
    %88 = stablehlo.convert %87 : (tensor<9xf32>) -> tensor<9xi32>
    %c_24 = stablehlo.constant dense<9> : tensor<i32>
    %89 = call @remainder(%88, %c_24) : (tensor<9xi32>, tensor<i32>) -> tensor<9xi32>
    %c_25 = stablehlo.constant dense<0> : tensor<i32>
    %90 = stablehlo.broadcast_in_dim %c_25, dims = [] : (tensor<i32>) -> tensor<9xi32>
    %91 = stablehlo.compare LT, %89, %90, SIGNED : (tensor<9xi32>, tensor<9xi32>) -> tensor<9xi1>
    %c_26 = stablehlo.constant dense<96> : tensor<i32>
    %92 = stablehlo.broadcast_in_dim %c_26, dims = [] : (tensor<i32>) -> tensor<9xi32>
    %93 = stablehlo.add %89, %92 : tensor<9xi32>
    %94 = stablehlo.select %91, %93, %89 : tensor<9xi1>, tensor<9xi32>
    %95 = stablehlo.broadcast_in_dim %94, dims = [0] : (tensor<9xi32>) -> tensor<9x1xi32>
    %96 = "stablehlo.gather"(%81, %95) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 80>}> : (tensor<96x80xcomplex<f32>>, tensor<9x1xi32>) -> tensor<9x80xcomplex<f32>>
    %97 = stablehlo.real %37 : (tensor<96x80xcomplex<f32>>) -> tensor<96x80xf32>
    %98 = stablehlo.imag %39 : (tensor<80x64xcomplex<f32>>) -> tensor<80x64xf32>
    %99 = stablehlo.real %45 : (tensor<96x80xcomplex<f32>>) -> tensor<96x80xf32>
    %100 = stablehlo.imag %49 : (tensor<192x40xcomplex<f32>>) -> tensor<192x40xf32>
    %101 = stablehlo.real %63 : (tensor<40xcomplex<f32>>) -> tensor<40xf32>
    %102 = stablehlo.imag %64#2 : (tensor<96x80xcomplex<f32>>) -> tensor<96x80xf32>
    %103 = stablehlo.real %96 : (tensor<9x80xcomplex<f32>>) -> tensor<9x80xf32>
    %104 = stablehlo.abs %37 : (tensor<96x80xcomplex<f32>>) -> tensor<96x80xf32>
    %105 = stablehlo.transpose %39, dims = [1, 0] : (tensor<80x64xcomplex<f32>>) -> tensor<64x80xcomplex<f32>>
    %106 = stablehlo.reshape %105 : (tensor<64x80xcomplex<f32>>) -> tensor<5120xcomplex<f32>>
    %107 = stablehlo.slice %106 [0:1] : (tensor<5120xcomplex<f32>>) -> tensor<1xcomplex<f32>>
    %cst_27 = stablehlo.constant dense<(2.000000e+00,0.000000e+00)> : tensor<complex<f32>>
    %108 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<complex<f32>>) -> tensor<1xcomplex<f32>>
    %109 = stablehlo.add %107, %108 : tensor<1xcomplex<f32>>
    %110 = stablehlo.broadcast_in_dim %109, dims = [1] : (tensor<1xcomplex<f32>>) -> tensor<1x1xcomplex<f32>>
    %111 = stablehlo.broadcast_in_dim %110, dims = [0, 1] : (tensor<1x1xcomplex<f32>>) -> tensor<96x80xcomplex<f32>>
    %112 = stablehlo.divide %37, %111 : tensor<96x80xcomplex<f32>>
    %113 = stablehlo.real %112 : (tensor<96x80xcomplex<f32>>) -> tensor<96x80xf32>
    %114 = stablehlo.convert %36 : (tensor<80x96xf32>) -> tensor<80x96xcomplex<f32>>
    %115 = stablehlo.iota dim = 0 : tensor<6144xf32>
    %cst_28 = stablehlo.constant dense<1.250000e+00> : tensor<f32>
    %116 = stablehlo.broadcast_in_dim %cst_28, dims = [] : (tensor<f32>) -> tensor<6144xf32>
    %117 = stablehlo.multiply %115, %116 : tensor<6144xf32>
    %118 = stablehlo.sine %117 : tensor<6144xf32>
    %119 = stablehlo.reshape %118 : (tensor<6144xf32>) -> tensor<96x64xf32>
    %cst_29 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %120 = stablehlo.broadcast_in_dim %cst_29, dims = [] : (tensor<f32>) -> tensor<96x64xf32>
    %121 = stablehlo.multiply %119, %120 : tensor<96x64xf32>
    %122 = stablehlo.convert %121 : (tensor<96x64xf32>) -> tensor<96x64xcomplex<f32>>
    %123 = stablehlo.dot_general %114, %122, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<80x96xcomplex<f32>>, tensor<96x64xcomplex<f32>>) -> tensor<80x64xcomplex<f32>>
    %124 = stablehlo.real %123 : (tensor<80x64xcomplex<f32>>) -> tensor<80x64xf32>
    %125 = stablehlo.convert %36 : (tensor<80x96xf32>) -> tensor<80x96xcomplex<f32>>
    %cst_30 = stablehlo.constant dense<(0.000000e+00,1.000000e+00)> : tensor<complex<f32>>
    %126 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<complex<f32>>) -> tensor<80x96xcomplex<f32>>
    %127 = stablehlo.multiply %125, %126 : tensor<80x96xcomplex<f32>>
    %128 = stablehlo.iota dim = 0 : tensor<6144xf32>
    %cst_31 = stablehlo.constant dense<1.360000e+00> : tensor<f32>
    %129 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<6144xf32>
    %130 = stablehlo.multiply %128, %129 : tensor<6144xf32>
    %131 = stablehlo.sine %130 : tensor<6144xf32>
    %132 = stablehlo.reshape %131 : (tensor<6144xf32>) -> tensor<96x64xf32>
    %cst_32 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %133 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<96x64xf32>
    %134 = stablehlo.multiply %132, %133 : tensor<96x64xf32>
    %135 = stablehlo.convert %134 : (tensor<96x64xf32>) -> tensor<96x64xcomplex<f32>>
    %cst_33 = stablehlo.constant dense<(0.000000e+00,1.000000e+00)> : tensor<complex<f32>>
    %136 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<complex<f32>>) -> tensor<96x64xcomplex<f32>>
    %137 = stablehlo.multiply %135, %136 : tensor<96x64xcomplex<f32>>
    %138 = stablehlo.dot_general %127, %137, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<80x96xcomplex<f32>>, tensor<96x64xcomplex<f32>>) -> tensor<80x64xcomplex<f32>>
    %139 = stablehlo.real %138 : (tensor<80x64xcomplex<f32>>) -> tensor<80x64xf32>
    %140 = stablehlo.imag %138 : (tensor<80x64xcomplex<f32>>) -> tensor<80x64xf32>
    %141 = stablehlo.broadcast_in_dim %139, dims = [1, 2] : (tensor<80x64xf32>) -> tensor<1x80x64xf32>
    %142 = stablehlo.broadcast_in_dim %140, dims = [1, 2] : (tensor<80x64xf32>) -> tensor<1x80x64xf32>
    %143 = stablehlo.concatenate %141, %142, dim = 0 : (tensor<1x80x64xf32>, tensor<1x80x64xf32>) -> tensor<2x80x64xf32>
    return %97, %98, %99, %100, %101, %102, %103, %104, %113, %124, %143 : tensor<96x80xf32>, tensor<80x64xf32>, tensor<96x80xf32>, tensor<192x40xf32>, tensor<40xf32>, tensor<96x80xf32>, tensor<9x80xf32>, tensor<96x80xf32>, tensor<96x80xf32>, tensor<80x64xf32>, tensor<2x80x64xf32>
  }
  func.func private @_pad(%arg0: tensor<96x80xcomplex<f32>>, %arg1: tensor<complex<f32>>) -> tensor<97x80xcomplex<f32>> {
    %0 = stablehlo.convert %arg1 : tensor<complex<f32>>
    %1 = stablehlo.pad %arg0, %0, low = [1, 0], high = [0, 0], interior = [0, 0] : (tensor<96x80xcomplex<f32>>, tensor<complex<f32>>) -> tensor<97x80xcomplex<f32>>
    return %1 : tensor<97x80xcomplex<f32>>
  }
  func.func private @_where(%arg0: tensor<192x40xi1>, %arg1: tensor<192x40xcomplex<f32>>, %arg2: tensor<192x40xcomplex<f32>>) -> tensor<192x40xcomplex<f32>> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<192x40xi1>, tensor<192x40xcomplex<f32>>
    return %0 : tensor<192x40xcomplex<f32>>
  }
  func.func private @closed_call(%arg0: tensor<96x80xcomplex<f32>>, %arg1: tensor<96x80xcomplex<f32>>) -> tensor<96x80xcomplex<f32>> {
    %0 = stablehlo.multiply %arg1, %arg0 : tensor<96x80xcomplex<f32>>
    %cst = stablehlo.constant dense<(0.000000e+00,1.000000e-03)> : tensor<complex<f32>>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<complex<f32>>) -> tensor<96x80xcomplex<f32>>
    %2 = stablehlo.multiply %arg1, %1 : tensor<96x80xcomplex<f32>>
    %3 = stablehlo.exponential %2 : tensor<96x80xcomplex<f32>>
    %4 = stablehlo.add %0, %3 : tensor<96x80xcomplex<f32>>
    return %4 : tensor<96x80xcomplex<f32>>
  }
  func.func private @remainder(%arg0: tensor<9xi32>, %arg1: tensor<i32>) -> tensor<9xi32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %2 = call @_where_0(%1, %c_0, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<9xi32>
    %4 = stablehlo.remainder %arg0, %3 : tensor<9xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<9xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<9xi32>, tensor<9xi32>) -> tensor<9xi1>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<9xi32>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<9xi32>, tensor<9xi32>) -> tensor<9xi1>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %9 = stablehlo.compare LT, %2, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<9xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<9xi1>, tensor<9xi1>) -> tensor<9xi1>
    %12 = stablehlo.and %11, %6 : tensor<9xi1>
    %13 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<9xi32>
    %14 = stablehlo.add %4, %13 : tensor<9xi32>
    %15 = stablehlo.select %12, %14, %4 : tensor<9xi1>, tensor<9xi32>
    return %15 : tensor<9xi32>
  }
  func.func private @_where_0(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
}
