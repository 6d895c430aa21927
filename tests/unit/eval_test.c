// SPDX-License-Identifier: Apache-2.0
// eval_test.c — the evaluator on small programs that carry their own expectations, with operands on
// the semantic edges, and on programs that must be refused.
//
// Programs are StableHLO text with check ops; a failing check raises CHECK with the element.
// Expected values come from the StableHLO specification's examples or were worked out by hand.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "hlo/eval.h"
#include "hlo/tol.h"
#include "read/read.h"

typedef struct Case {
    const char *name;
    otrn_status want;
    const char *text; // body of @main, or a whole module when it starts with "module"
    const char *says; // part of the message, when it must fail
} Case;

// clang-format off
#define K(name, v, type) name " = stablehlo.constant dense<" v "> : " type "\n"
#define EQ(name, v, type) "check.expect_eq_const " name ", dense<" v "> : " type "\n"
#define OP(line) line "\n"
#define RETURN(values, types) "stablehlo.return " values " : " types "\n"

static const Case cases[] = {
    {"add f32 rounds once", OTRN_OK,
     K("%a", "[16777216.0, 0.1]", "tensor<2xf32>")
     K("%b", "[1.0, 0.2]", "tensor<2xf32>")
     OP("%c = stablehlo.add %a, %b : tensor<2xf32>")
     EQ("%c", "[16777216.0, 0.3]", "tensor<2xf32>"), NULL},
    // 1.0078125² = 1.01568604 lies between 1.015625 and 1.0234375
    {"bf16 multiply rounds to the type", OTRN_OK,
     K("%a", "1.0078125", "tensor<bf16>")
     OP("%c = stablehlo.multiply %a, %a : tensor<bf16>")
     EQ("%c", "1.015625", "tensor<bf16>"), NULL},
    {"i8 wraps, divides, shifts", OTRN_OK,
     K("%a", "[127, -128, -128, 5]", "tensor<4xi8>")
     K("%b", "[1, -1, 0, 9]", "tensor<4xi8>")
     OP("%s = stablehlo.add %a, %b : tensor<4xi8>")
     OP("%d = stablehlo.divide %a, %b : tensor<4xi8>")
     OP("%r = stablehlo.remainder %a, %b : tensor<4xi8>")
     OP("%l = stablehlo.shift_left %a, %b : tensor<4xi8>")
     OP("%q = stablehlo.shift_right_arithmetic %a, %b : tensor<4xi8>")
     OP("%u = stablehlo.shift_right_logical %a, %b : tensor<4xi8>")
     EQ("%s", "[-128, 127, -128, 14]", "tensor<4xi8>")
     EQ("%d", "[127, -128, -1, 0]", "tensor<4xi8>")
     EQ("%r", "[0, 0, -128, 5]", "tensor<4xi8>")
     EQ("%l", "[-2, 0, -128, 0]", "tensor<4xi8>")
     EQ("%q", "[63, -1, -128, 0]", "tensor<4xi8>")
     EQ("%u", "[63, 0, -128, 0]", "tensor<4xi8>"), NULL},
    {"unsigned division and order", OTRN_OK,
     K("%a", "[200, 7]", "tensor<2xui8>")
     K("%b", "[3, 0]", "tensor<2xui8>")
     OP("%d = stablehlo.divide %a, %b : tensor<2xui8>")
     OP("%m = stablehlo.maximum %a, %b : tensor<2xui8>")
     EQ("%d", "[66, 255]", "tensor<2xui8>")
     EQ("%m", "[200, 7]", "tensor<2xui8>"), NULL},
    {"integer power", OTRN_OK,
     K("%a", "[2, -1, 1, 0, 3]", "tensor<5xi32>")
     K("%b", "[-1, -3, -7, 0, 21]", "tensor<5xi32>")
     OP("%p = stablehlo.power %a, %b : tensor<5xi32>")
     EQ("%p", "[0, -1, 1, 1, 1870418611]", "tensor<5xi32>"), NULL},
    {"bool arithmetic is logic", OTRN_OK,
     K("%a", "[true, true, false]", "tensor<3xi1>")
     K("%b", "[true, false, false]", "tensor<3xi1>")
     OP("%s = stablehlo.add %a, %b : tensor<3xi1>")
     OP("%m = stablehlo.multiply %a, %b : tensor<3xi1>")
     OP("%n = stablehlo.not %a : tensor<3xi1>")
     EQ("%s", "[true, true, false]", "tensor<3xi1>")
     EQ("%m", "[true, false, false]", "tensor<3xi1>")
     EQ("%n", "[false, false, true]", "tensor<3xi1>"), NULL},
    {"i4 wraps at its own width", OTRN_OK,
     K("%a", "[7, -8, 3]", "tensor<3xi4>")
     OP("%s = stablehlo.add %a, %a : tensor<3xi4>")
     OP("%p = stablehlo.popcnt %a : tensor<3xi4>")
     EQ("%s", "[-2, 0, 6]", "tensor<3xi4>")
     EQ("%p", "[3, 1, 2]", "tensor<3xi4>"), NULL},
    {"maximum keeps NaN", OTRN_OK,
     K("%a", "[0x7FC00000, 1.0]", "tensor<2xf32>")
     K("%b", "[1.0, 2.0]", "tensor<2xf32>")
     OP("%m = stablehlo.maximum %a, %b : tensor<2xf32>")
     OP("%f = stablehlo.is_finite %m : (tensor<2xf32>) -> tensor<2xi1>")
     EQ("%f", "[false, true]", "tensor<2xi1>"), NULL},
    {"convert saturates and truncates", OTRN_OK,
     K("%a", "[300.7, -300.7, 0x7FC00000, -0.9, 127.9]", "tensor<5xf32>")
     OP("%i = stablehlo.convert %a : (tensor<5xf32>) -> tensor<5xi8>")
     OP("%u = stablehlo.convert %a : (tensor<5xf32>) -> tensor<5xui8>")
     OP("%p = stablehlo.convert %a : (tensor<5xf32>) -> tensor<5xi1>")
     EQ("%i", "[127, -128, 0, 0, 127]", "tensor<5xi8>")
     EQ("%u", "[255, 0, 0, 0, 127]", "tensor<5xui8>")
     EQ("%p", "true", "tensor<5xi1>"), NULL},
    // 2^60 + 2^36 + 1: through a rounded double it would tie to even, down
    {"i64 to f32 rounds once", OTRN_OK,
     K("%a", "1152921573326323713", "tensor<i64>")
     OP("%f = stablehlo.convert %a : (tensor<i64>) -> tensor<f32>")
     EQ("%f", "0x5D800001", "tensor<f32>"), NULL},
    // 1 + 2^-8 + 2^-40: through f32 it would tie to even, down
    {"f64 to bf16 rounds once", OTRN_OK,
     K("%a", "0x3FF0100000001000", "tensor<f64>")
     OP("%f = stablehlo.convert %a : (tensor<f64>) -> tensor<bf16>")
     EQ("%f", "1.0078125", "tensor<bf16>"), NULL},
    {"bitcast splits little-endian", OTRN_OK,
     K("%a", "0x01020304", "tensor<ui32>")
     OP("%b = stablehlo.bitcast_convert %a : (tensor<ui32>) -> tensor<4xui8>")
     OP("%c = stablehlo.bitcast_convert %b : (tensor<4xui8>) -> tensor<ui32>")
     EQ("%b", "[4, 3, 2, 1]", "tensor<4xui8>")
     EQ("%c", "0x01020304", "tensor<ui32>"), NULL},
    {"reduce_precision without subnormals", OTRN_OK,
     K("%a", "[1.13, 70000.0, 1.0e-6, -0.0]", "tensor<4xf32>")
     OP("%b = stablehlo.reduce_precision %a, format = e5m2 : tensor<4xf32>")
     EQ("%b", "[1.25, 0x7F800000, 0.0, 0.0]", "tensor<4xf32>"), NULL},
    {"total order", OTRN_OK,
     K("%a", "[0xFFC00000, -0.0, 0x7F800000]", "tensor<3xf32>")
     K("%b", "[0xFF800000, 0.0, 0x7FC00000]", "tensor<3xf32>")
     OP("%c = stablehlo.compare LT, %a, %b, TOTALORDER :"
        " (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>")
     EQ("%c", "true", "tensor<3xi1>"), NULL},
    {"clamp with scalar bounds", OTRN_OK,
     K("%l", "0", "tensor<i32>")
     K("%x", "[-3, 2, 9]", "tensor<3xi32>")
     K("%h", "5", "tensor<i32>")
     OP("%c = stablehlo.clamp %l, %x, %h :"
        " (tensor<i32>, tensor<3xi32>, tensor<i32>) -> tensor<3xi32>")
     EQ("%c", "[0, 2, 5]", "tensor<3xi32>"), NULL},
    {"pad crops and dilates", OTRN_OK,
     K("%x", "[1, 2, 3, 4]", "tensor<4xi32>")
     K("%z", "0", "tensor<i32>")
     OP("%p = stablehlo.pad %x, %z, low = [-1], high = [2], interior = [1] :"
        " (tensor<4xi32>, tensor<i32>) -> tensor<8xi32>")
     EQ("%p", "[0, 2, 0, 3, 0, 4, 0, 0]", "tensor<8xi32>"), NULL},
    {"dynamic slices clamp", OTRN_OK,
     K("%x", "[1, 2, 3, 4]", "tensor<4xi32>")
     K("%i", "9", "tensor<i64>")
     K("%n", "-9", "tensor<i64>")
     OP("%s = stablehlo.dynamic_slice %x, %i, sizes = [2] :"
        " (tensor<4xi32>, tensor<i64>) -> tensor<2xi32>")
     OP("%u = stablehlo.dynamic_update_slice %x, %s, %n :"
        " (tensor<4xi32>, tensor<2xi32>, tensor<i64>) -> tensor<4xi32>")
     EQ("%s", "[3, 4]", "tensor<2xi32>")
     EQ("%u", "[3, 4, 3, 4]", "tensor<4xi32>"), NULL},
    // argmax as two streams
    {"reduce with a general body", OTRN_OK,
     K("%x", "[3, 9, 9, 1]", "tensor<4xi32>")
     K("%k", "[0, 1, 2, 3]", "tensor<4xi32>")
     K("%a", "-2147483648", "tensor<i32>")
     K("%b", "0", "tensor<i32>")
     OP("%r:2 = \"stablehlo.reduce\"(%x, %k, %a, %b) ({")
     OP("^bb0(%0: tensor<i32>, %1: tensor<i32>, %2: tensor<i32>, %3: tensor<i32>):")
     OP("%4 = stablehlo.compare GE, %0, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>")
     OP("%5 = stablehlo.select %4, %0, %2 : tensor<i1>, tensor<i32>")
     OP("%6 = stablehlo.select %4, %1, %3 : tensor<i1>, tensor<i32>")
     RETURN("%5, %6", "tensor<i32>, tensor<i32>")
     OP("}) {dimensions = array<i64: 0>} : (tensor<4xi32>, tensor<4xi32>, tensor<i32>,"
        " tensor<i32>) -> (tensor<i32>, tensor<i32>)")
     EQ("%r#0", "9", "tensor<i32>")
     EQ("%r#1", "1", "tensor<i32>"), NULL},
    {"reduce of nothing is init", OTRN_OK,
     K("%x", "", "tensor<0x3xf32>")
     K("%z", "7.0", "tensor<f32>")
     OP("%r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] :"
        " (tensor<0x3xf32>, tensor<f32>) -> tensor<3xf32>")
     EQ("%r", "7.0", "tensor<3xf32>"), NULL},
    // %b comes in from outside the loop, then the carried values trade places
    {"while keeps values that pass through", OTRN_OK,
     K("%i", "0", "tensor<i32>")
     K("%a", "[1, 2]", "tensor<2xi32>")
     K("%b", "[5, 7]", "tensor<2xi32>")
     K("%n", "5", "tensor<i32>")
     K("%one", "1", "tensor<i32>")
     OP("%r:3 = \"stablehlo.while\"(%i, %a, %b) ({")
     OP("^bb0(%0: tensor<i32>, %1: tensor<2xi32>, %2: tensor<2xi32>):")
     OP("%c = stablehlo.compare LT, %0, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>")
     RETURN("%c", "tensor<i1>")
     OP("}, {")
     OP("^bb0(%0: tensor<i32>, %1: tensor<2xi32>, %2: tensor<2xi32>):")
     OP("%d = stablehlo.add %0, %one : tensor<i32>")
     OP("%f = stablehlo.add %1, %2 : tensor<2xi32>")
     RETURN("%d, %2, %f", "tensor<i32>, tensor<2xi32>, tensor<2xi32>")
     OP("}) : (tensor<i32>, tensor<2xi32>, tensor<2xi32>)"
        " -> (tensor<i32>, tensor<2xi32>, tensor<2xi32>)")
     EQ("%r#0", "5", "tensor<i32>")
     EQ("%r#1", "[28, 41]", "tensor<2xi32>")
     EQ("%r#2", "[45, 66]", "tensor<2xi32>"), NULL},
    {"case out of range picks the last", OTRN_OK,
     K("%i", "-1", "tensor<i32>")
     OP("%r = \"stablehlo.case\"(%i) ({")
     K("%0", "1", "tensor<i32>")
     RETURN("%0", "tensor<i32>")
     OP("}, {")
     K("%1", "2", "tensor<i32>")
     RETURN("%1", "tensor<i32>")
     OP("}) : (tensor<i32>) -> tensor<i32>")
     EQ("%r", "2", "tensor<i32>"), NULL},
#define DOT_ALGORITHM(type, count)                                                                 \
    OP("%d = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0], algorithm = <"            \
       "lhs_precision_type = " type ", rhs_precision_type = " type ", accumulation_type = f32,"    \
       "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = " count ","   \
       "allow_imprecise_accumulation = false> : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>")
    // 1.00390625 is 1 in bf16, a tie to even; a second part restores it
    {"dot algorithm rounds its operands", OTRN_OK,
     K("%a", "[1.00390625, 1.0]", "tensor<2xf32>")
     K("%b", "[1.0, 2.0]", "tensor<2xf32>")
     DOT_ALGORITHM("bf16", "1")
     EQ("%d", "3.0", "tensor<f32>"), NULL},
    {"three bf16 products", OTRN_OK,
     K("%a", "[1.00390625, 1.0]", "tensor<2xf32>")
     K("%b", "[1.0, 2.0]", "tensor<2xf32>")
     DOT_ALGORITHM("bf16", "3")
     EQ("%d", "3.00390625", "tensor<f32>"), NULL},
    {"batch groups of a convolution", OTRN_OK,
     K("%x", "[[[1.0]], [[2.0]]]", "tensor<2x1x1xf32>")
     K("%k", "[[[3.0]], [[5.0]]]", "tensor<2x1x1xf32>")
     OP("%c = \"stablehlo.convolution\"(%x, %k) {batch_group_count = 2 : i64,"
        " feature_group_count = 1 : i64,"
        " dimension_numbers = #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>} :"
        " (tensor<2x1x1xf32>, tensor<2x1x1xf32>) -> tensor<1x2x1xf32>")
     EQ("%c", "[[[3.0], [10.0]]]", "tensor<1x2x1xf32>"), NULL},
    {"cholesky and solve", OTRN_OK,
     K("%a", "[[4.0, 9.0], [2.0, 10.0]]", "tensor<2x2xf64>")
     K("%b", "[[2.0], [7.0]]", "tensor<2x1xf64>")
     OP("%l = \"stablehlo.cholesky\"(%a) {lower = true} : (tensor<2x2xf64>) -> tensor<2x2xf64>")
     OP("%x = \"stablehlo.triangular_solve\"(%l, %b) {left_side = true, lower = true,"
        " unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} :"
        " (tensor<2x2xf64>, tensor<2x1xf64>) -> tensor<2x1xf64>")
     EQ("%l", "[[2.0, 0.0], [1.0, 3.0]]", "tensor<2x2xf64>")
     EQ("%x", "[[1.0], [2.0]]", "tensor<2x1xf64>"), NULL},
    {"fft of a delta and back", OTRN_OK,
     K("%a", "[0.0, 1.0, 0.0, 0.0, 0.0, 0.0]", "tensor<6xf64>")
     OP("%f = stablehlo.fft %a, type = RFFT, length = [6] :"
        " (tensor<6xf64>) -> tensor<4xcomplex<f64>>")
     OP("%b = stablehlo.fft %f, type = IRFFT, length = [6] :"
        " (tensor<4xcomplex<f64>>) -> tensor<6xf64>")
     OP("check.expect_almost_eq_const %b, dense<[0.0, 1.0, 0.0, 0.0, 0.0, 0.0]>"
        " : tensor<6xf64>"), NULL},
    {"batch_norm_training", OTRN_OK,
     K("%x", "[[1.0, 10.0], [3.0, 30.0]]", "tensor<2x2xf32>")
     K("%s", "2.0", "tensor<2xf32>")
     K("%o", "1.0", "tensor<2xf32>")
     OP("%r:3 = \"stablehlo.batch_norm_training\"(%x, %s, %o)"
        " {epsilon = 0.0 : f32, feature_index = 1 : i64} :"
        " (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>)"
        " -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>)")
     EQ("%r#0", "[[-1.0, -1.0], [3.0, 3.0]]", "tensor<2x2xf32>")
     EQ("%r#1", "[2.0, 20.0]", "tensor<2xf32>")
     EQ("%r#2", "[1.0, 100.0]", "tensor<2xf32>"), NULL},
    // d(sum of squares of the normalised x): with dy = x̂, dx = 0 and dscale = n
    {"batch_norm_grad", OTRN_OK,
     K("%x", "[[1.0], [3.0]]", "tensor<2x1xf32>")
     K("%s", "1.0", "tensor<1xf32>")
     K("%m", "2.0", "tensor<1xf32>")
     K("%v", "1.0", "tensor<1xf32>")
     K("%y", "[[-1.0], [1.0]]", "tensor<2x1xf32>")
     OP("%r:3 = \"stablehlo.batch_norm_grad\"(%x, %s, %m, %v, %y)"
        " {epsilon = 0.0 : f32, feature_index = 1 : i64} :"
        " (tensor<2x1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<2x1xf32>)"
        " -> (tensor<2x1xf32>, tensor<1xf32>, tensor<1xf32>)")
     EQ("%r#0", "0.0", "tensor<2x1xf32>")
     EQ("%r#1", "2.0", "tensor<1xf32>")
     EQ("%r#2", "0.0", "tensor<1xf32>"), NULL},
    {"einsum and dot", OTRN_OK,
     K("%a", "[[1, 2], [3, 4]]", "tensor<2x2xi32>")
     OP("%e = \"stablehlo.einsum\"(%a, %a) {einsum_config = \"ij,kj->ik\"} :"
        " (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>")
     OP("%d = \"stablehlo.dot\"(%a, %a) : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32>")
     EQ("%e", "[[5, 11], [11, 25]]", "tensor<2x2xi32>")
     EQ("%d", "[[7, 10], [15, 22]]", "tensor<2x2xi32>"), NULL},
    {"composite runs its decomposition", OTRN_OK,
     OP("module {")
     OP("func.func private @twice(%a: tensor<i32>) -> tensor<i32> {")
     OP("%0 = stablehlo.add %a, %a : tensor<i32>")
     OP("return %0 : tensor<i32>")
     OP("}")
     OP("func.func @main() {")
     K("%a", "4", "tensor<i32>")
     OP("%b = stablehlo.composite \"my.twice\" %a {decomposition = @twice} :"
        " (tensor<i32>) -> tensor<i32>")
     EQ("%b", "8", "tensor<i32>")
     OP("return")
     OP("}")
     OP("}"), NULL},

    // must fail
    {"a failing check names the element", OTRN_CHECK,
     K("%a", "[[1, 2], [3, 4]]", "tensor<2x2xi32>")
     EQ("%a", "[[1, 2], [5, 4]]", "tensor<2x2xi32>"),
     "element [1, 0] is 3, expected 5"},
    // the loop's arenas are open when it fails: nothing may leak
    {"a failure inside a loop", OTRN_CHECK,
     K("%a", "1", "tensor<i32>")
     OP("%r = \"stablehlo.while\"(%a) ({")
     OP("^bb0(%0: tensor<i32>):")
     OP("%c = stablehlo.compare LT, %0, %a : (tensor<i32>, tensor<i32>) -> tensor<i1>")
     OP("%t = stablehlo.not %c : tensor<i1>")
     RETURN("%t", "tensor<i1>")
     OP("}, {")
     OP("^bb0(%0: tensor<i32>):")
     OP("%b = stablehlo.add %0, %a : tensor<i32>")
     EQ("%b", "2", "tensor<i32>")
     RETURN("%b", "tensor<i32>")
     OP("}) : (tensor<i32>) -> tensor<i32>"),
     "is 3, expected 2"},
    {"recursion is refused", OTRN_UNSUPPORTED,
     OP("module {")
     OP("func.func private @f() {")
     OP("call @f() : () -> ()")
     OP("return")
     OP("}")
     OP("func.func @main() {")
     OP("call @f() : () -> ()")
     OP("return")
     OP("}")
     OP("}"), "calls itself"},
    {"unknown custom call", OTRN_UNSUPPORTED,
     K("%a", "1", "tensor<i32>")
     OP("%b = stablehlo.custom_call @nobody(%a) : (tensor<i32>) -> tensor<i32>"), "@nobody"},
    {"slice out of bounds", OTRN_VERIFY,
     K("%a", "[1, 2, 3]", "tensor<3xi32>")
     OP("%b = \"stablehlo.slice\"(%a) {start_indices = array<i64: 2>,"
        " limit_indices = array<i64: 5>, strides = array<i64: 1>} :"
        " (tensor<3xi32>) -> tensor<3xi32>"), "slice out of bounds"},
    {"wrong dot shape", OTRN_VERIFY,
     K("%a", "1.0", "tensor<2x3xf32>")
     OP("%d = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] :"
        " (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>"),
     "contracted dimensions differ"},
};

// A loop over a value of 256 KiB, 300 times
static const char loop_text[] =
    K("%i", "0", "tensor<i32>")
    K("%x", "1.0", "tensor<65536xf32>")
    K("%n", "300", "tensor<i32>")
    K("%one", "1", "tensor<i32>")
    OP("%r:2 = \"stablehlo.while\"(%i, %x) ({")
    OP("^bb0(%0: tensor<i32>, %1: tensor<65536xf32>):")
    OP("%c = stablehlo.compare LT, %0, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>")
    RETURN("%c", "tensor<i1>")
    OP("}, {")
    OP("^bb0(%0: tensor<i32>, %1: tensor<65536xf32>):")
    OP("%d = stablehlo.add %0, %one : tensor<i32>")
    OP("%f = stablehlo.add %1, %1 : tensor<65536xf32>")
    OP("%g = stablehlo.subtract %f, %1 : tensor<65536xf32>")
    RETURN("%d, %g", "tensor<i32>, tensor<65536xf32>")
    OP("}) : (tensor<i32>, tensor<65536xf32>) -> (tensor<i32>, tensor<65536xf32>)")
    EQ("%r#0", "300", "tensor<i32>")
    EQ("%r#1", "1.0", "tensor<65536xf32>");
// clang-format on

static void wrap(Buf *out, const char *text) {
    bool whole = !strncmp(text, "module", 6);
    buf_puts(out, whole ? "" : "module {\nfunc.func @main() {\n");
    buf_puts(out, text);
    buf_puts(out, whole ? "" : "return\n}\n}\n");
}

static int failures;

static void result(const char *name, bool ok, const char *why) {
    failures += !ok;
    if (ok)
        printf("ok %s\n", name);
    else
        printf("FAIL %s: %s\n", name, why);
}

static void run_case(const Case *c) {
    Ctx ctx = {0};
    Arena a;
    jmp_buf jb;
    volatile otrn_status got = OTRN_OK;
    arena_init(&a, &ctx);
    if (CTX_TRY(&ctx, jb)) {
        Buf b = {.arena = &a};
        wrap(&b, c->text);
        Hlo *h = read_text(&ctx, &a, c->name, b.at, b.n);
        eval_func(h, &a, hlo_main(h), NULL, NULL);
    } else
        got = ctx.err.code;
    char why[1400];
    snprintf(why, sizeof why, "%s %s", otrn_status_name(got), got ? ctx.err.text : "");
    result(c->name, got == c->want && (!c->says || strstr(ctx.err.text, c->says)), why);
    arena_fini(&a);
}

// --- what text cannot show
// ------------------------------------------------------------------------------

// A loop of many iterations over a large value: memory must stay near a few copies of it.
static void test_while_memory(void) {
    Ctx ctx = {0};
    Arena a;
    jmp_buf jb;
    arena_init(&a, &ctx);
    bool ok = false;
    if (CTX_TRY(&ctx, jb)) {
        Buf b = {.arena = &a};
        wrap(&b, loop_text);
        Hlo *h = read_text(&ctx, &a, "loop", b.at, b.n);
        eval_func(h, &a, hlo_main(h), NULL, NULL);
        ok = a.total_bytes < 4u << 20; // 300 iterations of three values would be 200 MB
    }
    result("while memory", ok,
           ctx.err.text[0] ? ctx.err.text : "the caller's arena grew with the trip count");
    arena_fini(&a);
}

// A straight chain reuses the memory of dead values.
static void test_reuse(void) {
    Ctx ctx = {0};
    Arena a;
    jmp_buf jb;
    arena_init(&a, &ctx);
    bool ok = false;
    if (CTX_TRY(&ctx, jb)) {
        Buf b = {.arena = &a};
        buf_puts(&b, "module {\nfunc.func @main(%v0: tensor<65536xf32>) -> tensor<65536xf32> {\n");
        for (int i = 0; i < 100; i++)
            buf_printf(&b, "%%v%d = stablehlo.negate %%v%d : tensor<65536xf32>\n", i + 1, i);
        buf_puts(&b, "return %v100 : tensor<65536xf32>\n}\n}\n");
        Hlo *h = read_text(&ctx, &a, "chain", b.at, b.n);
        Tensor in = {hlo_type_tensor(h, DT_F32, 1, (int64_t[]){65536}),
                     ARENA_NEWN(&a, float, 65536)},
               out;
        ((float *)in.data)[7] = 3;
        size_t before = a.total_bytes;
        eval_func(h, &a, hlo_main(h), &in, &out);
        ok = a.total_bytes - before < 2u << 20 &&
             ((float *)out.data)[7] == 3; // 100 values would be 26 MB
    }
    result("reuse of dead values", ok, ctx.err.text[0] ? ctx.err.text : "memory or value is wrong");
    arena_fini(&a);
}

static void test_eval_op(void) {
    Ctx ctx = {0};
    Arena a;
    jmp_buf jb;
    arena_init(&a, &ctx);
    bool ok = false;
    if (CTX_TRY(&ctx, jb)) {
        Hlo *h = hlo_make(&ctx, &a, "fold");
        TypeId t = hlo_type_tensor(h, DT_F32, 0, NULL);
        ValueId v[2] = {hlo_value(h, t), hlo_value(h, t)};
        OpId add = hlo_op(h, HLO_ADD, 0, 2, v, 1, &t), call = hlo_op(h, HLO_CALL, 0, 2, v, 1, &t);
        float x = 1.5f, y = 2.25f;
        Tensor in[2] = {{t, &x}, {t, &y}}, out = {0};
        ok = eval_op(h, &a, add, in, &out) && *(float *)out.data == 3.75f &&
             !eval_op(h, &a, call, in, &out);
        ok = ok && eval_has(HLO_ADD) && !eval_has(HLO_NONE);
    }
    result("eval_op folds one op", ok, ctx.err.text);
    arena_fini(&a);
}

static void test_tol(void) {
    size_t bad = 99;
    float want[3] = {1, 1000, NAN}, near[3] = {1.00001f, 1000.01f, NAN}, off[3] = {1, 1000.1f, NAN};
    result("tol f32 near", tol_close(DT_F32, near, want, 3, &bad), "refused");
    result("tol f32 off", !tol_close(DT_F32, off, want, 3, &bad) && bad == 1,
           "accepted or wrong index");
    float inf[1] = {INFINITY}, max[1] = {3.4028235e38f};
    result("tol inf is only itself",
           tol_close(DT_F32, inf, inf, 1, NULL) && !tol_close(DT_F32, max, inf, 1, NULL), "wrong");
    int32_t i[2] = {1, 2}, j[2] = {1, 3};
    result("tol ints are exact",
           tol_close(DT_I32, i, i, 2, NULL) && !tol_close(DT_I32, i, j, 2, &bad) && bad == 1,
           "wrong");
}

int main(int argc, char **argv) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc < 2 || strstr(cases[i].name, argv[1]))
            run_case(&cases[i]);
    test_while_memory();
    test_reuse();
    test_eval_op();
    test_tol();
    return failures != 0;
}
