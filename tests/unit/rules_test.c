// SPDX-License-Identifier: Apache-2.0
// rules_test.c — one small program per rule of the verifier: it must be refused, with the rule's number.
//
// A row is: op, rule, argument types, the op's text with %0, %1 … for the arguments, and its types. Rules without a
// number are told by a word of the message. Every row also has the op's place: line 2 of the program.
#include <stdio.h>
#include <string.h>

#include "read/read.h"

typedef struct Row {
    const char *rule; // what the message ends with, or a part of it
    const char *args, *op;
} Row;

// A region that adds two scalars of a type; one that compares them.
#define SUM(T) "({^bb0(%x: tensor<" T ">, %y: tensor<" T ">): %z = stablehlo.add %x, %y : tensor<" T "> stablehlo.return %z : tensor<" T ">})"
#define GE(T)                                                                                                          \
    "{^bb0(%x: tensor<" T ">, %y: tensor<" T ">): %z = stablehlo.compare GE, %x, %y : (tensor<" T ">, tensor<" T           \
    ">) -> tensor<i1> stablehlo.return %z : tensor<i1>}"
#define LT(T) "(" GE(T) ")"
#define CONV(DIMS, MORE, TYPES)                                                                                        \
    "\"stablehlo.convolution\"(%0, %1) <{batch_group_count = 1 : i64, feature_group_count = 1 : i64, dimension_numbers = "     \
    "#stablehlo.conv<" DIMS ">" MORE "}> : " TYPES
#define NHWC "[b, 0, f]x[0, i, o]->[b, 0, f]"
#define GATHER(OFFSET, DROP, MAP, IVD, SIZES, TYPES)                                                                   \
    "\"stablehlo.gather\"(%0, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = " OFFSET ", collapsed_slice_dims = " DROP \
    ", start_index_map = " MAP ", index_vector_dim = " IVD ">, slice_sizes = array<i64: " SIZES ">}> : " TYPES
#define SCATTER(WINDOW, INSERT, MAP, IVD, T, TYPES)                                                                    \
    "\"stablehlo.scatter\"(%0, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = " WINDOW            \
    ", inserted_window_dims = " INSERT ", scatter_dims_to_operand_dims = " MAP ", index_vector_dim = " IVD ">}> " SUM(T) " : " TYPES
#define WINDOW(ATTRS, T, TYPES) "\"stablehlo.reduce_window\"(%0, %1) <{" ATTRS "}> " SUM(T) " : " TYPES
#define SELECT(ATTRS, T, TYPES) "\"stablehlo.select_and_scatter\"(%0, %1, %2) <{" ATTRS "}> (" GE(T) ", {^bb0(%x: tensor<" T ">, %y: tensor<" T ">): %z = stablehlo.add %x, %y : tensor<" T "> stablehlo.return %z : tensor<" T ">}) : " TYPES
#define GROUPS(G) "replica_groups = dense<" G "> : tensor<1x2xi64>"
#define Q "!quant.uniform<i8:f32, 0.5>"
#define QROWS "!quant.uniform<i8:f32:0, {0.5, 0.25}>"
#define QCOLS "!quant.uniform<i8:f32:1, {0.5, 0.25}>"
#define QBLOCKS "!quant.uniform<i8:f32:{0:1, 1:2}, {{0.5, 2.0:1}, {1.0:-1, 0.25}}>"
#define ALGORITHM(L, N, P)                                                                                             \
    "stablehlo.dot_general %0, %1, contracting_dims = [1] x [0]" P ", algorithm = <lhs_precision_type = f32, rhs_precision_type = f32, " \
    "accumulation_type = f32, lhs_component_count = " L ", rhs_component_count = 1, num_primitive_operations = " N           \
    ", allow_imprecise_accumulation = false> : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>"

#define RAGGED(DIMS, TYPES) "\"chlo.ragged_dot\"(%0, %1, %2) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<" DIMS ">}> : " TYPES
#define SCAN(MORE, A, B, TYPES)                                                                                        \
    "%r:2 = \"chlo.scan\"(%0, %1) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>" MORE "}> ({^bb0(%x: " A ", %y: " B \
    "): stablehlo.return %x, %y : " A ", " B "}) : " TYPES

#define M "tensor<2x2xf32>"
#define V "tensor<4xf32>"
#define S "tensor<f32>"

static const Row rows[] = {
    // elementwise
    {"(I1)", V, "stablehlo.and %0, %0 : " V},
    {"(I1)", V, "stablehlo.popcnt %0 : " V},
    {"(I1)", "tensor<4xi32>", "stablehlo.tanh %0 : tensor<4xi32>"},
    {"(I1)", "tensor<4xui8>", "stablehlo.abs %0 : tensor<4xui8>"},
    {"(I1)", "tensor<4xbf16>", "\"stablehlo.complex\"(%0, %0) : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xcomplex<f32>>"},
    {"(I1)", "tensor<2x2x" QROWS ">", "stablehlo.tanh %0 : tensor<2x2x" QROWS ">"},
    {"(I1)", "tensor<4x" Q ">", "stablehlo.convert %0 : (tensor<4x" Q ">) -> tensor<4xf32>"},
    {"(C1)", V ", tensor<5xf32>", "\"stablehlo.add\"(%0, %1) : (" V ", tensor<5xf32>) -> " V},
    {"(C1)", V, "stablehlo.exponential %0 : (" V ") -> tensor<4xf64>"},
    {"(C1)", V, "stablehlo.is_finite %0 : (" V ") -> tensor<4xi8>"},
    {"(C2)", "tensor<4xcomplex<f32>>", "stablehlo.abs %0 : (tensor<4xcomplex<f32>>) -> tensor<4xf64>"},
    {"(C3)", "tensor<4xf32>", "\"stablehlo.complex\"(%0, %0) : (" V ", " V ") -> tensor<4xcomplex<f64>>"},
    {"(C1)", V ", tensor<4xf64>", "stablehlo.compare EQ, %0, %1 : (" V ", tensor<4xf64>) -> tensor<4xi1>"},
    {"(C2)", V, "stablehlo.compare EQ, %0, %0 : (" V ", " V ") -> tensor<5xi1>"},
    {"(C3)", "tensor<4xi32>", "stablehlo.compare EQ, %0, %0, FLOAT : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>"},
    {"(I1)", V, "\"stablehlo.select\"(%0, %0, %0) : (" V ", " V ", " V ") -> " V},
    {"(C1)", "tensor<3xi1>, " V, "\"stablehlo.select\"(%0, %1, %1) : (tensor<3xi1>, " V ", " V ") -> " V},
    {"(C2)", "tensor<4xi1>, " V, "\"stablehlo.select\"(%0, %1, %1) : (tensor<4xi1>, " V ", " V ") -> tensor<4xf64>"},
    {"(C1)", "tensor<3xf32>, " V, "\"stablehlo.clamp\"(%0, %1, %1) : (tensor<3xf32>, " V ", " V ") -> " V},
    {"(C2)", "tensor<3xf32>, " V, "\"stablehlo.clamp\"(%1, %1, %0) : (" V ", " V ", tensor<3xf32>) -> " V},
    {"(C3)", "tensor<4xf64>, " V, "\"stablehlo.clamp\"(%0, %1, %1) : (tensor<4xf64>, " V ", " V ") -> " V},
    {"(C2)", V, "stablehlo.reduce_precision %0, format = e0m3 : " V},
    {"TOLERANCE", V, "\"stablehlo.exponential\"(%0) <{result_accuracy = #stablehlo.result_accuracy<ulps = 3, mode = #stablehlo.result_accuracy_mode<HIGHEST>>}> : (" V ") -> " V},
    // quantised
    {"(C3)", "tensor<4x" Q ">, tensor<4x!quant.uniform<i16:f32, 0.5>>", "\"stablehlo.add\"(%0, %1) : (tensor<4x" Q ">, tensor<4x!quant.uniform<i16:f32, 0.5>>) -> tensor<4x" Q ">"},
    {"(C5)", "tensor<2x2x" QROWS ">", "\"stablehlo.add\"(%0, %0) : (tensor<2x2x" QROWS ">, tensor<2x2x" QROWS ">) -> tensor<2x2x" Q ">"},
    {"(C6)", "tensor<2x2x" QROWS ">", "\"stablehlo.add\"(%0, %0) : (tensor<2x2x" QROWS ">, tensor<2x2x" QROWS ">) -> tensor<2x2x" QCOLS ">"},
    {"(C1)", "tensor<4x" Q ">", "stablehlo.reshape %0 : (tensor<4x" Q ">) -> tensor<2x2x!quant.uniform<i8:f32, 0.25>>"},
    {"(C4)", "tensor<2x2x" QROWS ">", "stablehlo.transpose %0, dims = [1, 0] : (tensor<2x2x" QROWS ">) -> tensor<2x2x" QROWS ">"},
    {"(C6)", "tensor<2x2x" QROWS ">", "stablehlo.broadcast_in_dim %0, dims = [1, 0] : (tensor<2x2x" QROWS ">) -> tensor<2x2x" QROWS ">"},
    {"(C1)", "tensor<4x" Q ">", "stablehlo.slice %0 [0:2] : (tensor<4x" Q ">) -> tensor<2x!quant.uniform<i8:f32, 0.25>>"},
    {"(C14)", "tensor<2x2x" Q ">, " M, "stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<2x2x" Q ">, " M ") -> tensor<2x2x" Q ">"},
    {"(C15)", M ", tensor<2x2x!quant.uniform<i8:f32, 0.5:3>>", "stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (" M ", tensor<2x2x!quant.uniform<i8:f32, 0.5:3>>) -> " M},
    {"(C16)", M ", tensor<2x2x" QROWS ">", "stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (" M ", tensor<2x2x" QROWS ">) -> " M},
    {"(C20)", "tensor<2x2xf64>, tensor<2x2x" Q ">", "stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<2x2xf64>, tensor<2x2x" Q ">) -> tensor<2x2xf64>"},
    {"(C7)", "tensor<4x!quant.uniform<i8:f32, 0.5:300>>", "stablehlo.tanh %0 : tensor<4x!quant.uniform<i8:f32, 0.5:300>>"},
    {"(C13)", "tensor<3x2x" QROWS ">", "stablehlo.tanh %0 : tensor<3x2x" QROWS ">"},
    {"(I1)", V, "stablehlo.uniform_dequantize %0 : (" V ") -> " V},
    {"(C2)", V, "stablehlo.uniform_quantize %0 : (" V ") -> " V},
    // movement
    {"(C1)", V, "stablehlo.reshape %0 : (" V ") -> tensor<2x2xf64>"},
    {"(C2)", V, "stablehlo.reshape %0 : (" V ") -> tensor<2x3xf32>"},
    {"(C2)", V, "stablehlo.broadcast_in_dim %0, dims = [0, 1] : (" V ") -> tensor<4x4xf32>"},
    {"(C3)", V, "stablehlo.broadcast_in_dim %0, dims = [2] : (" V ") -> tensor<4x4xf32>"},
    {"(C4)", M, "stablehlo.broadcast_in_dim %0, dims = [0, 0] : (" M ") -> " M},
    {"(C5)", V, "stablehlo.broadcast_in_dim %0, dims = [0] : (" V ") -> tensor<5xf32>"},
    {"must be known", V, "stablehlo.broadcast_in_dim %0, dims = [1] : (" V ") -> tensor<?x4xf32>"},
    {"(C2)", M, "stablehlo.transpose %0, dims = [0, 0] : (" M ") -> " M},
    {"(C3)", "tensor<2x3xf32>", "stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>"},
    {"(C2)", M, "stablehlo.reverse %0, dims = [0, 0] : " M},
    {"(C3)", V, "stablehlo.reverse %0, dims = [1] : " V},
    {"(C2)", V, "\"stablehlo.slice\"(%0) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 2>, strides = array<i64: 1>}> : (" V ") -> tensor<2xf32>"},
    {"(C3)", V, "stablehlo.slice %0 [3:6] : (" V ") -> tensor<3xf32>"},
    {"(C4)", V, "stablehlo.slice %0 [0:2:0] : (" V ") -> tensor<2xf32>"},
    {"(C5)", V, "stablehlo.slice %0 [0:4:3] : (" V ") -> tensor<1xf32>"},
    {"(C2)", V ", tensor<i32>", "\"stablehlo.dynamic_slice\"(%0, %1, %1) <{slice_sizes = array<i64: 2>}> : (" V ", tensor<i32>, tensor<i32>) -> tensor<2xf32>"},
    {"(C3)", M ", tensor<i32>, tensor<i64>", "\"stablehlo.dynamic_slice\"(%0, %1, %2) <{slice_sizes = array<i64: 1, 1>}> : (" M ", tensor<i32>, tensor<i64>) -> tensor<1x1xf32>"},
    {"(I2)", V ", tensor<1xi32>", "\"stablehlo.dynamic_slice\"(%0, %1) <{slice_sizes = array<i64: 1>}> : (" V ", tensor<1xi32>) -> tensor<1xf32>"},
    {"(C4)", V ", tensor<i32>", "\"stablehlo.dynamic_slice\"(%0, %1) <{slice_sizes = array<i64: 5>}> : (" V ", tensor<i32>) -> tensor<5xf32>"},
    {"(C3)", V ", " M ", tensor<i32>", "stablehlo.dynamic_update_slice %0, %1, %2 : (" V ", " M ", tensor<i32>) -> " V},
    {"(C6)", V ", tensor<5xf32>, tensor<i32>", "stablehlo.dynamic_update_slice %0, %1, %2 : (" V ", tensor<5xf32>, tensor<i32>) -> " V},
    {"(I2)", V, "stablehlo.pad %0, %0, low = [1], high = [0], interior = [0] : (" V ", " V ") -> tensor<5xf32>"},
    {"(C1)", V ", tensor<f64>", "stablehlo.pad %0, %1, low = [1], high = [0], interior = [0] : (" V ", tensor<f64>) -> tensor<5xf32>"},
    {"(C3)", V ", " S, "stablehlo.pad %0, %1, low = [1], high = [0], interior = [-1] : (" V ", " S ") -> tensor<5xf32>"},
    {"(C4)", V ", " S, "stablehlo.pad %0, %1, low = [1], high = [0], interior = [0] : (" V ", " S ") -> tensor<6xf32>"},
    {"(C1)", V ", tensor<4xf64>", "stablehlo.concatenate %0, %1, dim = 0 : (" V ", tensor<4xf64>) -> tensor<8xf32>"},
    {"(C2)", M ", tensor<3x3xf32>", "stablehlo.concatenate %0, %1, dim = 0 : (" M ", tensor<3x3xf32>) -> tensor<5x2xf32>"},
    {"(C4)", V, "stablehlo.concatenate %0, dim = 1 : (" V ") -> " V},
    {"(C6)", V, "stablehlo.concatenate %0, %0, dim = 0 : (" V ", " V ") -> tensor<7xf32>"},
    {"(C1)", "", "stablehlo.iota dim = 1 : tensor<4xi32>"},
    {"(C1)", V, "stablehlo.bitcast_convert %0 : (" V ") -> tensor<4xi16>"},
    {"(C2)", "tensor<4xf64>", "stablehlo.bitcast_convert %0 : (tensor<4xf64>) -> tensor<4xcomplex<f32>>"},
    {"(C4)", V ", tensor<3xi32>", "stablehlo.dynamic_reshape %0, %1 : (" V ", tensor<3xi32>) -> tensor<?x?xf32>"},
    {"(C7)", V ", tensor<3xi32>", "stablehlo.dynamic_broadcast_in_dim %0, %1, dims = [0] : (" V ", tensor<3xi32>) -> tensor<4x?xf32>"},
    {"(C8)", V ", tensor<2xi32>", "\"stablehlo.dynamic_broadcast_in_dim\"(%0, %1) <{broadcast_dimensions = array<i64: 0>, known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 0>}> : (" V ", tensor<2xi32>) -> tensor<4x?xf32>"},
    {"(C2)", V ", " S ", tensor<2xi32>", "stablehlo.dynamic_pad %0, %1, %2, %2, %2 : (" V ", " S ", tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?xf32>"},
    {"(C2)", "tensor<2xi32>", "stablehlo.dynamic_iota %0, dim = 0 : (tensor<2xi32>) -> tensor<?xf32>"},
    // gather and scatter
    {"(C1)", "tensor<4x3xf32>, tensor<2x1xi32>", GATHER("[1]", "[]", "[0]", "1", "1, 3", "(tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>")},
    {"(C2)", "tensor<4x3xf32>, tensor<2x1xi32>", GATHER("[1]", "[0]", "[0]", "3", "1, 3", "(tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>")},
    {"(C3)", "tensor<4x3xf32>, tensor<2x2xi32>", GATHER("[1]", "[0]", "[0]", "1", "1, 3", "(tensor<4x3xf32>, tensor<2x2xi32>) -> tensor<2x3xf32>")},
    {"(C5)", "tensor<4x3xf32>, tensor<2x1xi32>", GATHER("[2]", "[0]", "[0]", "1", "1, 3", "(tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>")},
    {"(C8)", "tensor<4x3xf32>, tensor<2x1xi32>", GATHER("[1]", "[2]", "[0]", "1", "1, 3", "(tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>")},
    {"(C9)", "tensor<4x3xf32>, tensor<2x1xi32>", GATHER("[1]", "[0]", "[0]", "1", "2, 3", "(tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>")},
    {"(C19)", "tensor<4x3xf32>, tensor<2x1xi32>", GATHER("[1]", "[0]", "[2]", "1", "1, 3", "(tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>")},
    {"(C20)", "tensor<4x3xf32>, tensor<2x1xi32>", GATHER("[1]", "[0]", "[0]", "1", "1", "(tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>")},
    {"(C21)", "tensor<4x3xf32>, tensor<2x1xi32>", GATHER("[1]", "[0]", "[0]", "1", "1, 4", "(tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x4xf32>")},
    {"(C22)", "tensor<4x3xf32>, tensor<2x1xi32>", GATHER("[1]", "[0]", "[0]", "1", "1, 3", "(tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<5x3xf32>")},
    {"(C23)", "tensor<4x3xf32>, tensor<2x1xi32>", GATHER("[1]", "[0]", "[0]", "1", "1, 3", "(tensor<4x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf64>")},
    {"(I2)", "tensor<4x3xf32>, tensor<2x1xf32>", GATHER("[1]", "[0]", "[0]", "1", "1, 3", "(tensor<4x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>")},
    {"(C2)", "tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>", SCATTER("[1]", "[]", "[0]", "1", "f32", "(tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>")},
    {"(C4)", "tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x4xf32>", SCATTER("[1]", "[0]", "[0]", "1", "f32", "(tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x4xf32>) -> tensor<4x3xf32>")},
    {"(C6)", "tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf64>", SCATTER("[1]", "[0]", "[0]", "1", "f32", "(tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf64>) -> tensor<4x3xf32>")},
    {"(C19)", "tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>", SCATTER("[1]", "[0]", "[0, 1]", "1", "f32", "(tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>")},
    {"(C22)", "tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>", SCATTER("[1]", "[0]", "[0]", "4", "f32", "(tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>")},
    {"(C23)", "tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>", SCATTER("[1]", "[0]", "[0]", "1", "i32", "(tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<4x3xf32>")},
    {"(C24)", "tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>", SCATTER("[1]", "[0]", "[0]", "1", "f32", "(tensor<4x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<3x3xf32>")},
    // products
    {"(C1)", "tensor<2x2x2xf32>", "stablehlo.dot_general %0, %0, batching_dims = [0] x [], contracting_dims = [1] x [1] : (tensor<2x2x2xf32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf32>"},
    {"(C2)", M, "stablehlo.dot_general %0, %0, contracting_dims = [1] x [] : (" M ", " M ") -> " M},
    {"(C3)", M, "stablehlo.dot_general %0, %0, batching_dims = [1] x [0], contracting_dims = [1] x [1] : (" M ", " M ") -> " M},
    {"(C6)", M, "stablehlo.dot_general %0, %0, contracting_dims = [2] x [0] : (" M ", " M ") -> " M},
    {"(C10)", "tensor<2x3xf32>", "stablehlo.dot_general %0, %0, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>"},
    {"(C12)", M, "stablehlo.dot_general %0, %0, contracting_dims = [1] x [0] : (" M ", " M ") -> tensor<2x3xf32>"},
    {"(C13)", M ", tensor<2x2xi32>", "stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (" M ", tensor<2x2xi32>) -> " M},
    {"(C21)", M ", " M, ALGORITHM("1", "1", ", precision = [HIGH, HIGH]")},
    {"(C22)", M ", " M, ALGORITHM("0", "1", "")},
    {"(C24)", M ", " M, ALGORITHM("1", "0", "")},
    {"(I8)", M ", " M, ALGORITHM("2", "1", "")},
    {"two sizes", "tensor<2x3xf32>", "\"stablehlo.einsum\"(%0, %0) <{einsum_config = \"ab,bc->ac\"}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>"},
    {"(C1)", "tensor<1x4x2xf32>, tensor<3x2xf32>", CONV("[b, 0, f]x[i, o]->[b, 0, f]", "", "(tensor<1x4x2xf32>, tensor<3x2xf32>) -> tensor<1x2x5xf32>")},
    {"(C3)", "tensor<1x4x2xf32>, tensor<3x2x5xf32>", CONV(NHWC, ", window_strides = array<i64: 0>", "(tensor<1x4x2xf32>, tensor<3x2x5xf32>) -> tensor<1x2x5xf32>")},
    {"(C4)", "tensor<1x4x2xf32>, tensor<3x2x5xf32>", CONV(NHWC, ", padding = dense<0> : tensor<2x2xi64>", "(tensor<1x4x2xf32>, tensor<3x2x5xf32>) -> tensor<1x2x5xf32>")},
    {"(C14)", "tensor<1x4x3xf32>, tensor<3x2x5xf32>", CONV(NHWC, "", "(tensor<1x4x3xf32>, tensor<3x2x5xf32>) -> tensor<1x2x5xf32>")},
    {"(C25)", "tensor<1x4x2xf32>, tensor<3x2x5xf32>", CONV(NHWC, "", "(tensor<1x4x2xf32>, tensor<3x2x5xf32>) -> tensor<1x3x5xf32>")},
    {"(C27)", "tensor<1x4x2xf32>, tensor<3x2x5xi32>", CONV(NHWC, "", "(tensor<1x4x2xf32>, tensor<3x2x5xi32>) -> tensor<1x2x5xf32>")},
    // regions
    {"(C4)", V ", " S, "\"stablehlo.reduce\"(%0, %1) <{dimensions = array<i64: 1>}> " SUM("f32") " : (" V ", " S ") -> " S},
    {"(C5)", V ", " S, "\"stablehlo.reduce\"(%0, %1) <{dimensions = array<i64: 0, 0>}> " SUM("f32") " : (" V ", " S ") -> " S},
    {"(C6)", V ", " S, "\"stablehlo.reduce\"(%0, %1) <{dimensions = array<i64: 0>}> " SUM("i32") " : (" V ", " S ") -> " S},
    {"(C7)", V ", " S, "\"stablehlo.reduce\"(%0, %1) <{dimensions = array<i64: 0>}> " SUM("f32") " : (" V ", " S ") -> " V},
    {"(C2)", V ", tensor<i32>", "\"stablehlo.reduce\"(%0, %1) <{dimensions = array<i64: 0>}> " SUM("f32") " : (" V ", tensor<i32>) -> " S},
    {"(I2)", V, "\"stablehlo.reduce\"(%0, %0) <{dimensions = array<i64: 0>}> " SUM("f32") " : (" V ", " V ") -> " S},
    {"(C4)", V ", " S, WINDOW("window_dimensions = array<i64: 2, 2>", "f32", "(" V ", " S ") -> tensor<3xf32>")},
    {"(C5)", V ", " S, WINDOW("window_dimensions = array<i64: 0>", "f32", "(" V ", " S ") -> tensor<3xf32>")},
    {"(C7)", V ", " S, WINDOW("window_dimensions = array<i64: 2>, window_strides = array<i64: 0>", "f32", "(" V ", " S ") -> tensor<3xf32>")},
    {"(C9)", V ", " S, WINDOW("window_dimensions = array<i64: 2>, base_dilations = array<i64: -1>", "f32", "(" V ", " S ") -> tensor<3xf32>")},
    {"(C12)", V ", " S, WINDOW("window_dimensions = array<i64: 2>, padding = dense<0> : tensor<2x1xi64>", "f32", "(" V ", " S ") -> tensor<3xf32>")},
    {"(C13)", V ", " S, WINDOW("window_dimensions = array<i64: 2>", "i32", "(" V ", " S ") -> tensor<3xf32>")},
    {"(C15)", V ", " S, WINDOW("window_dimensions = array<i64: 2>", "f32", "(" V ", " S ") -> tensor<4xf32>")},
    {"(C1)", V ", tensor<2xf64>, " S, SELECT("window_dimensions = array<i64: 2>, window_strides = array<i64: 2>", "f32", "(" V ", tensor<2xf64>, " S ") -> " V)},
    {"(C2)", V ", tensor<3xf32>, " S, SELECT("window_dimensions = array<i64: 2>, window_strides = array<i64: 2>", "f32", "(" V ", tensor<3xf32>, " S ") -> " V)},
    {"(C9)", V ", tensor<2xf32>, " S, SELECT("window_dimensions = array<i64: 2>, window_strides = array<i64: 2>", "i32", "(" V ", tensor<2xf32>, " S ") -> " V)},
    {"(C11)", V ", tensor<2xf32>, " S, SELECT("window_dimensions = array<i64: 2>, window_strides = array<i64: 2>", "f32", "(" V ", tensor<2xf32>, " S ") -> tensor<5xf32>")},
    {"(C2)", V, "\"stablehlo.sort\"(%0) <{dimension = 0 : i64}> " LT("f32") " : (" V ") -> tensor<4xf64>"},
    {"(C3)", V ", tensor<5xf32>", "\"stablehlo.sort\"(%0, %1) <{dimension = 0 : i64}> ({^bb0(%x: " S ", %y: " S ", %s: " S ", %t: " S "): %z = stablehlo.compare LT, %x, %y : (" S ", " S ") -> tensor<i1> stablehlo.return %z : tensor<i1>}) : (" V ", tensor<5xf32>) -> (" V ", tensor<5xf32>)"},
    {"(C4)", V, "\"stablehlo.sort\"(%0) <{dimension = 1 : i64}> " LT("f32") " : (" V ") -> " V},
    {"(C5)", V, "\"stablehlo.sort\"(%0) <{dimension = 0 : i64}> " LT("i32") " : (" V ") -> " V},
    {"(C1)", V, "\"stablehlo.map\"(%0) <{dimensions = array<i64: 0>}> ({^bb0(%x: " S "): stablehlo.return %x : " S "}) : (" V ") -> tensor<5xf32>"},
    {"(C3)", V, "\"stablehlo.map\"(%0) <{dimensions = array<i64: 1>}> ({^bb0(%x: " S "): stablehlo.return %x : " S "}) : (" V ") -> " V},
    {"(C4)", V, "\"stablehlo.map\"(%0) <{dimensions = array<i64: 0>}> ({^bb0(%x: tensor<i32>): stablehlo.return %x : tensor<i32>}) : (" V ") -> " V},
    {"(C1)", S, "\"stablehlo.while\"(%0) ({^bb0(%x: " S "): stablehlo.return %x : " S "}, {^bb0(%x: " S "): stablehlo.return %x : " S "}) : (" S ") -> " S},
    {"(C2)", "tensor<i1>", "\"stablehlo.while\"(%0) ({^bb0(%x: tensor<i1>): stablehlo.return %x : tensor<i1>}, {^bb0(%x: tensor<i1>): stablehlo.return %x, %x : tensor<i1>, tensor<i1>}) : (tensor<i1>) -> tensor<i1>"},
    {"(I1)", S, "\"stablehlo.if\"(%0) ({stablehlo.return}, {stablehlo.return}) : (" S ") -> ()"},
    {"(C2)", "tensor<i1>, " S, "\"stablehlo.if\"(%0) ({stablehlo.return %1 : " S "}, {stablehlo.return %0 : tensor<i1>}) : (tensor<i1>) -> " S},
    {"(I1)", "tensor<i64>", "\"stablehlo.case\"(%0) ({stablehlo.return}) : (tensor<i64>) -> ()"},
    {"(C4)", "tensor<i32>", "\"stablehlo.case\"(%0) ({stablehlo.return}) : (tensor<i32>) -> " S},
    // devices
    {"(C1)", V, "\"stablehlo.all_gather\"(%0) <{all_gather_dim = 1 : i64, " GROUPS("[[0, 1]]") "}> : (" V ") -> tensor<8xf32>"},
    {"(C2)", V, "\"stablehlo.all_gather\"(%0) <{all_gather_dim = 0 : i64, " GROUPS("[[1, 1]]") "}> : (" V ") -> tensor<8xf32>"},
    {"(C4)", V, "\"stablehlo.all_gather\"(%0) <{all_gather_dim = 0 : i64, " GROUPS("[[0, -1]]") "}> : (" V ") -> tensor<8xf32>"},
    {"(C5)", V, "\"stablehlo.all_gather\"(%0) <{all_gather_dim = 0 : i64, " GROUPS("[[0, 1]]") ", use_global_device_ids}> : (" V ") -> tensor<8xf32>"},
    {"(C6)", V, "\"stablehlo.all_gather\"(%0) <{all_gather_dim = 0 : i64, " GROUPS("[[0, 1]]") "}> : (" V ") -> tensor<9xf32>"},
    {"(C1)", V, "\"stablehlo.all_reduce\"(%0) <{" GROUPS("[[0, 0]]") "}> " SUM("f32") " : (" V ") -> " V},
    {"(C5)", V, "\"stablehlo.all_reduce\"(%0) <{" GROUPS("[[0, 1]]") "}> " SUM("i32") " : (" V ") -> " V},
    {"(C1)", "tensor<3xf32>", "\"stablehlo.reduce_scatter\"(%0) <{scatter_dimension = 0 : i64, " GROUPS("[[0, 1]]") "}> " SUM("f32") " : (tensor<3xf32>) -> tensor<2xf32>"},
    {"(C2)", V, "\"stablehlo.reduce_scatter\"(%0) <{scatter_dimension = 1 : i64, " GROUPS("[[0, 1]]") "}> " SUM("f32") " : (" V ") -> tensor<2xf32>"},
    {"(C2)", "tensor<3xf32>", "\"stablehlo.all_to_all\"(%0) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, " GROUPS("[[0, 1]]") "}> : (tensor<3xf32>) -> tensor<3xf32>"},
    {"(C4)", V, "\"stablehlo.all_to_all\"(%0) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 0 : i64, " GROUPS("[[0, 1]]") "}> : (" V ") -> " V},
    {"(C8)", V, "\"stablehlo.all_to_all\"(%0) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 4 : i64, " GROUPS("[[0, 1]]") "}> : (" V ") -> " V},
    {"(C1)", V, "\"stablehlo.collective_permute\"(%0) <{source_target_pairs = dense<0> : tensor<2x3xi64>}> : (" V ") -> " V},
    {"(C2)", V, "\"stablehlo.collective_permute\"(%0) <{source_target_pairs = dense<[[0, 1], [0, 2]]> : tensor<2x2xi64>}> : (" V ") -> " V},
    {"(C3)", V, "\"stablehlo.collective_permute\"(%0) <{source_target_pairs = dense<[[0, 1], [2, 1]]> : tensor<2x2xi64>}> : (" V ") -> " V},
    {"(C4)", V, "\"stablehlo.collective_permute\"(%0) <{source_target_pairs = dense<[[0, -1]]> : tensor<1x2xi64>}> : (" V ") -> " V},
    {"(C5)", V, "\"stablehlo.collective_permute\"(%0) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (" V ") -> tensor<5xf32>"},
    {"(C1)", V, "\"stablehlo.collective_broadcast\"(%0) <{" GROUPS("[[7, 7]]") "}> : (" V ") -> " V},
    {"(C5)", V ", !stablehlo.token", "\"stablehlo.send\"(%0, %1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, is_host_transfer = true}> : (" V ", !stablehlo.token) -> !stablehlo.token"},
    {"(I2)", V, "\"stablehlo.outfeed\"(%0) <{outfeed_config = \"\"}> : (" V ") -> !stablehlo.token"},
    {"(C3)", "!stablehlo.token", "\"stablehlo.infeed\"(%0) <{infeed_config = \"\"}> : (!stablehlo.token) -> " V},
    {"(C2)", V, "\"stablehlo.async_start\"(%0) ({^bb0(%x: " V "): %y = stablehlo.abs %x : " V " stablehlo.return %y : " V "}) : (" V ") -> !stablehlo.future<" V ">"},
    {"(C1)", V, "\"stablehlo.async_start\"(%0) ({^bb0(%x: " V "): stablehlo.return %x : " V "}) : (" V ") -> !stablehlo.future<" V ">"},
    {"(C4)", V, "\"stablehlo.async_start\"(%0) ({^bb0(%x: " V "): %y = stablehlo.slice %x [0:2] : (" V ") -> tensor<2xf32> stablehlo.return %y : tensor<2xf32>}) : (" V ") -> !stablehlo.future<" V ">"},
    {"(C1)", "!stablehlo.future<" V ">", "\"stablehlo.async_done\"(%0) : (!stablehlo.future<" V ">) -> tensor<5xf32>"},
    // the rest
    {"(C1)", V, "\"stablehlo.tuple\"(%0) : (" V ") -> tuple<tensor<5xf32>>"},
    {"(C1)", "tuple<" V ">", "stablehlo.get_tuple_element %0[1] : (tuple<" V ">) -> " V},
    {"(C2)", "tuple<" V ">", "stablehlo.get_tuple_element %0[0] : (tuple<" V ">) -> tensor<5xf32>"},
    {"(C1)", V, "stablehlo.get_dimension_size %0, dim = 1 : (" V ") -> tensor<i32>"},
    {"(C1)", V, "\"stablehlo.optimization_barrier\"(%0) : (" V ") -> tensor<5xf32>"},
    {"(C1)", "", "\"stablehlo.constant\"() <{value = dense<1.0> : tensor<4xf32>}> : () -> tensor<5xf32>"},
    {"(C1)", V, "stablehlo.composite \"noname\" %0 {decomposition = @f} : (" V ") -> " V},
    {"(C2)", V, "stablehlo.composite \"my.op\" %0 {decomposition = @missing} : (" V ") -> " V},
    {"(I4)", V, "stablehlo.custom_call @g(%0) {api_version = 4 : i32, backend_config = \"text\"} : (" V ") -> " V},
    {"(I7)", V, "stablehlo.custom_call @g(%0) {output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>]} : (" V ") -> " V},
    {"layout", M, "stablehlo.custom_call @g(%0) {operand_layouts = [dense<[0, 0]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (" M ") -> " M},
    {"(I1)", "tensor<2x2xi32>", "stablehlo.cholesky %0, lower = true : tensor<2x2xi32>"},
    {"(C2)", V, "stablehlo.cholesky %0, lower = true : " V},
    {"(C3)", "tensor<2x3xf32>", "stablehlo.cholesky %0, lower = true : tensor<2x3xf32>"},
    {"(C3)", M ", tensor<3x3xf32>", "\"stablehlo.triangular_solve\"(%0, %1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (" M ", tensor<3x3xf32>) -> tensor<3x3xf32>"},
    {"(C2)", V, "stablehlo.fft %0, type = FFT, length = [4] : (" V ") -> tensor<4xcomplex<f32>>"},
    {"(C3)", "tensor<4xcomplex<f32>>", "stablehlo.fft %0, type = FFT, length = [] : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>"},
    {"(C5)", V, "stablehlo.fft %0, type = RFFT, length = [4] : (" V ") -> tensor<4xcomplex<f32>>"},
    {"(C2)", "tensor<i32>, tensor<1xi64>", "stablehlo.rng %0, %0, %1, distribution = NORMAL : (tensor<i32>, tensor<i32>, tensor<1xi64>) -> tensor<4xi32>"},
    {"(C2)", "tensor<3xui64>", "stablehlo.rng_bit_generator %0, algorithm = THREE_FRY : (tensor<3xui64>) -> (tensor<3xui64>, tensor<4xui32>)"},
    {"(C1)", "tensor<2x3xf32>, tensor<3xf32>", "\"stablehlo.batch_norm_training\"(%0, %1, %1) <{epsilon = 1.0e-3 : f32, feature_index = 2 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)"},
    {"(C3)", "tensor<2x3xf32>, tensor<2xf32>", "\"stablehlo.batch_norm_training\"(%0, %1, %1) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>)"},
    // scales of blocks
    {"(I1)", "tensor<2x4x" QBLOCKS ">", "stablehlo.tanh %0 : tensor<2x4x" QBLOCKS ">"},
    {"(I1)", "tensor<2x4x" QBLOCKS ">, tensor<4x2xf32>", "stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<2x4x" QBLOCKS ">, tensor<4x2xf32>) -> tensor<2x2xf32>"},
    {"one scale for each block", "tensor<2x6x" QBLOCKS ">", "stablehlo.uniform_dequantize %0 : (tensor<2x6x" QBLOCKS ">) -> tensor<2x6xf32>"},
    {"must divide", "tensor<2x5x" QBLOCKS ">", "stablehlo.uniform_dequantize %0 : (tensor<2x5x" QBLOCKS ">) -> tensor<2x5xf32>"},
    {"different dimensions", "tensor<2x4x!quant.uniform<i8:f32:{2:2}, {{0.5, 0.5}}>>", "stablehlo.optimization_barrier"},
    {"different dimensions", "tensor<2x4x!quant.uniform<i8:f32:{1:2, 1:2}, {{0.5, 0.5}}>>", "stablehlo.optimization_barrier"},
    {"different dimensions", "tensor<2x4x!quant.uniform<i8:f32:{1:0}, {{0.5, 0.5}}>>", "stablehlo.optimization_barrier"},
    {"lists in lists", "tensor<2x4x!quant.uniform<i8:f32:{1:2}, {0.5, 0.5}>>", "stablehlo.optimization_barrier"},
    {"of one length", "tensor<2x4x!quant.uniform<i8:f32:{0:1, 1:2}, {{0.5, 0.5}, {0.5}}>>", "stablehlo.optimization_barrier"},
    {"(C5, C6)", "tensor<2x4x!quant.uniform<i8:f32:{1:2}, {{0.5, 0.0}}>>", "stablehlo.optimization_barrier"},
    {"(C7)", "tensor<2x4x!quant.uniform<i8:f32:{1:2}, {{0.5, 1.0:128}}>>", "stablehlo.optimization_barrier"},
    // chlo
    {"smaller operand", "tensor<1x4xf32>, " V, "chlo.broadcast_add %0, %1 {broadcast_dimensions = array<i64: 0, 1>} : (tensor<1x4xf32>, " V ") -> tensor<1x4xf32>"},
    {"must ascend", "tensor<1x4xf32>, " V, "chlo.broadcast_add %0, %1 {broadcast_dimensions = array<i64: 2>} : (tensor<1x4xf32>, " V ") -> tensor<1x4xf32>"},
    {"cannot be broadcast", "tensor<1x4xf32>, tensor<3xf32>", "chlo.broadcast_add %0, %1 : (tensor<1x4xf32>, tensor<3xf32>) -> tensor<1x4xf32>"},
    {"larger operand", "tensor<1x4xf32>, " V, "chlo.broadcast_add %0, %1 : (tensor<1x4xf32>, " V ") -> " V},
    {"stored in different", "tensor<4x" Q ">", "chlo.broadcast_maximum %0, %0 : (tensor<4x" Q ">, tensor<4x" Q ">) -> tensor<4x!quant.uniform<i16:f32, 0.5>>"},
    {"are not allowed", V, "chlo.broadcast_and %0, %0 : (" V ", " V ") -> " V},
    {"compare_type does not fit", "tensor<4xi32>", "chlo.broadcast_compare %0, %0 {compare_type = #chlo<comparison_type UNSIGNED>, comparison_direction = #chlo<comparison_direction LT>} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>"},
    {"f32 or f64", "tensor<4xbf16>", "chlo.broadcast_complex %0, %0 : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xcomplex<f32>>"},
    {"must hold i1", V, "chlo.broadcast_compare %0, %0 {comparison_direction = #chlo<comparison_direction LT>} : (" V ", " V ") -> " V},
    {"element type", V, "\"chlo.constant_like\"(%0) <{value = 3.2 : f32}> : (" V ") -> tensor<4xi32>"},
    {"differ in size", "tensor<3x5xf32>, tensor<2x4x7xf32>, tensor<2xi32>", RAGGED("lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]", "(tensor<3x5xf32>, tensor<2x4x7xf32>, tensor<2xi32>) -> tensor<3x7xf32>")},
    {"one list", "tensor<3x5xf32>, tensor<2x5x7xf32>, tensor<3x2xi32>", RAGGED("lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]", "(tensor<3x5xf32>, tensor<2x5x7xf32>, tensor<3x2xi32>) -> tensor<3x7xf32>")},
    {"differs from the left", "tensor<4x3x5xf32>, tensor<2x5x7xf32>, tensor<3x2xi32>", RAGGED("lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [1], rhs_group_dimensions = [0]", "(tensor<4x3x5xf32>, tensor<2x5x7xf32>, tensor<3x2xi32>) -> tensor<4x3x7xf32>")},
    {"exactly one ragged", "tensor<3x5xf32>, tensor<2x5x7xf32>, tensor<2xi32>", RAGGED("lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0, 1], rhs_group_dimensions = [0]", "(tensor<3x5xf32>, tensor<2x5x7xf32>, tensor<2xi32>) -> tensor<3x7xf32>")},
    {"exactly one group", "tensor<3x5xf32>, tensor<5x7xf32>, tensor<2xi32>", RAGGED("lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [0]", "(tensor<3x5xf32>, tensor<5x7xf32>, tensor<2xi32>) -> tensor<3x7xf32>")},
    {"contracting too", "tensor<3x2xf32>, tensor<2x2x7xf32>, tensor<2xi32>", RAGGED("lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [1]", "(tensor<3x2xf32>, tensor<2x2x7xf32>, tensor<2xi32>) -> tensor<3x7xf32>")},
    {"for each group", "tensor<3x5xf32>, tensor<2x5x7xf32>, tensor<3xi32>", RAGGED("lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]", "(tensor<3x5xf32>, tensor<2x5x7xf32>, tensor<3xi32>) -> tensor<3x7xf32>")},
    {"no group dimension", "tensor<3x5xf32>, tensor<2x5x7xf32>, tensor<2xi32>", RAGGED("lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [1], rhs_group_dimensions = [0]", "(tensor<3x5xf32>, tensor<2x5x7xf32>, tensor<2xi32>) -> tensor<2x3x7xf32>")},
    {"product's shape", "tensor<3x5xf32>, tensor<5x7xf32>, tensor<2xi32>", RAGGED("lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [1]", "(tensor<3x5xf32>, tensor<5x7xf32>, tensor<2xi32>) -> tensor<3x7xf32>")},
    {"scanned dimension", "tensor<2x3xf32>, tensor<3xf32>", SCAN(", scan_dim_size = 3 : i64", "tensor<3xf32>", "tensor<3xf32>", "(tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)")},
    {"operand 1 is", "tensor<2x3xf32>, tensor<3xi32>", SCAN("", "tensor<3xf32>", "tensor<3xf32>", "(tensor<2x3xf32>, tensor<3xi32>) -> (tensor<2x3xf32>, tensor<3xf32>)")},
    {"operand 0 is", "tensor<2x3xf32>, tensor<3xf32>", SCAN("", "tensor<2xf32>", "tensor<3xf32>", "(tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)")},
    {"result 0 is", "tensor<2x3xf32>, tensor<3xf32>", SCAN("", "tensor<3xf32>", "tensor<3xf32>", "(tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x4xf32>, tensor<3xf32>)")},
    {"wider ones", M, "\"stablehlo.einsum\"(%0, %0) <{einsum_config = \"ab,bc->ac\"}> : (" M ", " M ") -> tensor<2x2xbf16>"},
    {"no mesh", "tensor<2xf32>", "%1 = \"stablehlo.all_gather\"(%0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = \"x\">]>}> : (tensor<2xf32>) -> tensor<4xf32>"},
};

// The program of a row: its arguments on line 1, its op on line 2.
static size_t write_program(const Row *r, char *out, size_t room) {
    int n = snprintf(out, room, "func.func private @f(");
    const char *s = r->args;
    for (int i = 0, depth = 0; *s; i++) {
        n += snprintf(out + n, room - (size_t)n, "%s%%%d: ", i ? ", " : "", i);
        for (; *s && (depth || *s != ','); s++) {
            depth += (*s == '<' || *s == '{') - (*s == '>' || *s == '}');
            out[n++] = *s;
        }
        s += *s == ',';
        s += *s == ' ';
    }
    n += snprintf(out + n, room - (size_t)n, ") {\n  %s\n  return\n}\n", r->op);
    return (size_t)n;
}

// True when the verifier takes the text.
static bool accepts(Ctx *ctx, const char *text, size_t n) {
    Arena arena, *volatile keep = &arena;
    jmp_buf jb;
    arena_init(&arena, ctx);
    volatile bool accepted = false;
    if (CTX_TRY(ctx, jb)) {
        hlo_verify(read_text(ctx, keep, "t", text, n));
        accepted = true;
    }
    arena_fini(keep);
    return accepted;
}

static bool check_row(const Row *r, size_t number) {
    static char text[8192];
    Ctx ctx = {0};
    size_t n = write_program(r, text, sizeof text);
    bool accepted = accepts(&ctx, text, n);
    const char *found = strstr(ctx.err.text, r->rule);
    bool ok = !accepted && ctx.err.code == OTRN_VERIFY && found && ctx.err.line && ctx.err.line <= 2;
    if (ok && r->rule[0] == '(')
        ok = !found[strlen(r->rule)]; // the number ends the message
    if (ok)
        printf("ok %zu %s\n", number, r->rule);
    else
        printf("FAIL %zu %s: %s: %s: %s\n", number, r->rule, accepted ? "accepted" : otrn_status_name(ctx.err.code),
               ctx.err.text, r->op);
    return ok;
}

int main(void) {
    int failed = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        failed += !check_row(&rows[i], i);
    return failed > 0;
}
