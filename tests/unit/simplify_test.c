// SPDX-License-Identifier: Apache-2.0
// simplify_test.c — rules of the tables below, each on a program of its own: the evaluator's results before and after the pass differ by no more than the rule's row
// allows. Arguments hold zeros of both signs, infinities, NaN, subnormal and extreme numbers, unless the row asks for less.
//   simplify_test [ROUNDS [SEED]]
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/eval.h"
#include "pass/rules.h"
#include "read/read.h"
#include "tests/unit/unit.h"

#define ELEMS_MAX 8192
#define ARGS_MAX 4

typedef struct Case {
    const char *rule; // how the name of its row begins
    const char *args, *to, *body;
} Case;

#define F "tensor<4x6xf32>"
#define H "tensor<4x3xf32>"
#define HALVES "%a = stablehlo.slice %x [0:4, 0:3] : (" F ") -> " H "\n %b = stablehlo.slice %x [0:4, 3:6] : (" F ") -> " H \
    "\n %cs = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<3xf32>) -> " H "\n %ss = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<3xf32>) -> " H "\n"
#define SPLAT(name, text) "%" name " = stablehlo.constant dense<" text "> : " F "\n"
#define SCATTER(x, i, u, t, tu, dims)                                                                                                         \
    "%s = \"stablehlo.scatter\"(" x ", " i ", " u ") <{" dims "}> ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %t = stablehlo.add %a, %b : "      \
    "tensor<f32> \n stablehlo.return %t : tensor<f32> }) : (" t ", tensor<4x1xi32>, " tu ") -> " t "\n"
#define A_ROW "inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1"
#define ZEROS "%z = stablehlo.constant dense<0.0> : tensor<f32>\n%zs = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> " F "\n"
#define PUT /* one number a row, written over */                                                                                              \
    ZEROS "%s = \"stablehlo.scatter\"(%zs, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<" A_ROW ">}> ({ ^bb0(%a: tensor<f32>, %b: "  \
          "tensor<f32>): stablehlo.return %b : tensor<f32> }) : (" F ", tensor<4x1xi32>, tensor<4xf32>) -> " F "\n"
#define PLACES "scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>"

static const Case cases[] = {
    {"reshape of", "%x: " F, "tensor<24xf32>",
     "%y = stablehlo.reshape %x : (" F ") -> tensor<6x4xf32>\n %r = stablehlo.reshape %y : (tensor<6x4xf32>) -> tensor<24xf32>"},
    {"transpose that", "%x: " F, F,
     "%y = stablehlo.transpose %x, dims = [1, 0] : (" F ") -> tensor<6x4xf32>\n %r = stablehlo.transpose %y, dims = [1, 0] : (tensor<6x4xf32>) -> " F},
    {"transpose that", "%x: " F ", %w: tensor<6x3xf32>", "tensor<3x4xf32>",
     "%y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (" F ", tensor<6x3xf32>) -> tensor<4x3xf32>\n"
     "%r = stablehlo.transpose %y, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>"},
    {"broadcast that", "%x: tensor<6xf32>", "tensor<2x4x6xf32>",
     "%y = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<6xf32>) -> " F "\n"
     "%r = stablehlo.broadcast_in_dim %y, dims = [1, 2] : (" F ") -> tensor<2x4x6xf32>"},
    {"slice of", "%x: " F, F, "%r = stablehlo.slice %x [0:4, 0:6] : (" F ") -> " F},
    {"slice of a", "%x: tensor<9x8xf32>", "tensor<2x3xf32>",
     "%y = stablehlo.slice %x [1:9:3, 0:7:2] : (tensor<9x8xf32>) -> tensor<3x4xf32>\n"
     "%r = stablehlo.slice %y [0:3:2, 1:4] : (tensor<3x4xf32>) -> tensor<2x3xf32>"},
    {"pad by", "%x: " F, F,
     "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
     "%r = stablehlo.pad %x, %z, low = [0, 0], high = [0, 0], interior = [0, 0] : (" F ", tensor<f32>) -> " F},
    {"concatenate of", "%x: " F, F, "%r = stablehlo.concatenate %x, dim = 0 : (" F ") -> " F},
#define ALONE "replica_groups = dense<0> : tensor<1x1xi64>"
#define SUMS "({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %t = stablehlo.add %a, %b : tensor<f32> \n stablehlo.return %t : tensor<f32> })"
    {"all_reduce of one", "%x: " F, F, "%r = \"stablehlo.all_reduce\"(%x) <{" ALONE "}> " SUMS " : (" F ") -> " F},
    {"all_gather of one", "%x: " F, F, "%r = \"stablehlo.all_gather\"(%x) <{all_gather_dim = 0 : i64, " ALONE "}> : (" F ") -> " F},
    {"reduce_scatter of one", "%x: " F, F,
     "%r = \"stablehlo.reduce_scatter\"(%x) <{scatter_dimension = 0 : i64, " ALONE "}> " SUMS " : (" F ") -> " F},
    {"all_to_all of one", "%x: " F, F,
     "%r = \"stablehlo.all_to_all\"(%x) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 1 : i64, " ALONE "}> : (" F ") -> " F},
    {"sum of one", "%x: " F, "tensor<24xf32>",
     "%z = stablehlo.constant dense<0.0> : tensor<f32>\n %y = stablehlo.reshape %x : (" F ") -> tensor<24x1xf32>\n"
     "%r = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [1] : (tensor<24x1xf32>, tensor<f32>) -> tensor<24xf32>"},
    {"reduction of one", "%x: " F, "tensor<24xf32>",
     "%z = stablehlo.constant dense<0.7> : tensor<f32>\n %y = stablehlo.reshape %x : (" F ") -> tensor<24x1xf32>\n"
     "%r = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [1] : (tensor<24x1xf32>, tensor<f32>) -> tensor<24xf32>"},
    {"largest of", "%x: " F, "tensor<4xf32>",
     "%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n" SPLAT("c", "0.125") "%y = stablehlo.multiply %x, %c : " F "\n"
     "%r = stablehlo.reduce(%y init: %z) applies stablehlo.maximum across dimensions = [1] : (" F ", tensor<f32>) -> tensor<4xf32>"},
    {"select known", "%x: " F ", %y: " F, F,
     "%p = stablehlo.constant dense<false> : tensor<4x6xi1>\n %r = stablehlo.select %p, %x, %y : tensor<4x6xi1>, " F},
    {"select(p, x * 2^k, number)", "%x: " F ", %p: tensor<4x6xi1>", F,
     SPLAT("c", "0.125") SPLAT("n", "-1.0e9") "%y = stablehlo.multiply %x, %c : " F "\n %r = stablehlo.select %p, %y, %n : tensor<4x6xi1>, " F},
    {"x * 1:", "%x: " F, F, SPLAT("c", "1.0") "%r = stablehlo.multiply %c, %x : " F},
    {"select(p, y, 0) * 2^k", "%x: " F ", %y: " F, F,
     SPLAT("c", "0.25") "%z = stablehlo.multiply %x, %y : " F "\n %r = stablehlo.multiply %z, %c : " F},
    {"select(p, y, 0) * 2^k", "%x: " F ", %p: tensor<4x6xi1>", F,
     SPLAT("c", "4.0") SPLAT("n", "0.0") "%z = stablehlo.select %p, %x, %n : tensor<4x6xi1>, " F "\n %r = stablehlo.multiply %z, %c : " F},
    {"-x * c", "%x: " F, F, SPLAT("c", "0.1") "%y = stablehlo.negate %x : " F "\n %r = stablehlo.multiply %c, %y : " F},
    {"-x * c", "%x: tensor<4x6xbf16>", "tensor<4x6xbf16>",
     "%c = stablehlo.constant dense<0.7> : tensor<4x6xbf16>\n %y = stablehlo.negate %x : tensor<4x6xbf16>\n %r = stablehlo.multiply %y, %c : tensor<4x6xbf16>"},
    {"-(x * c)", "%x: " F, F, SPLAT("c", "0.1") "%y = stablehlo.multiply %c, %x : " F "\n %r = stablehlo.negate %y : " F},
    {"select(p, x, x / r)", "%x: " F ", %p: tensor<i1>, %n: tensor<f32>", F,
     "%b = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<f32>) -> " F "\n %y = stablehlo.divide %x, %b : " F
     "\n %r = \"stablehlo.select\"(%p, %x, %y) : (tensor<i1>, " F ", " F ") -> " F},
    {"select(p, x, x / r)", "%x: " F ", %p: tensor<i1>, %n: tensor<1xf32>", F,
     "%b = stablehlo.broadcast_in_dim %n, dims = [0] : (tensor<1xf32>) -> " F "\n %y = stablehlo.multiply %b, %x : " F
     "\n %q = stablehlo.broadcast_in_dim %p, dims = [] : (tensor<i1>) -> tensor<4x6xi1>\n %r = stablehlo.select %q, %y, %x : tensor<4x6xi1>, " F},
    {"x + -y", "%x: " F ", %y: " F, F, "%z = stablehlo.negate %y : " F "\n %r = stablehlo.add %x, %z : " F},
    {"x + -y", "%x: " F ", %y: " F, F, "%z = stablehlo.negate %x : " F "\n %r = stablehlo.add %z, %y : " F},
    {"x - -y", "%x: " F ", %y: " F, F, "%z = stablehlo.negate %y : " F "\n %r = stablehlo.subtract %x, %z : " F},
    {"x / 1:", "%x: " F, F, SPLAT("c", "1.0") "%r = stablehlo.divide %x, %c : " F},
    {"select(p, y, 0) / 2^k", "%x: " F ", %y: " F, F,
     SPLAT("c", "8.0") "%z = stablehlo.multiply %x, %y : " F "\n %r = stablehlo.divide %z, %c : " F},
    {"x / 2^k", "%x: " F, F, SPLAT("c", "-8.0") "%r = stablehlo.divide %x, %c : " F},
    {"x + -0.0", "%x: " F, F, SPLAT("c", "-0.0") "%r = stablehlo.add %x, %c : " F},
    {"x + 0.0", "%x: " F, F, SPLAT("c", "0.0") "%r = stablehlo.add %c, %x : " F},
    {"pad(x, 0) + pad(y, 0)", "%x: tensor<4x2xf32>, %y: tensor<4x3xf32>, %u: tensor<4x1xf32>", "tensor<4x7xf32>", // three, and one column of none
     "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
     "%a = stablehlo.pad %x, %z, low = [0, 4], high = [0, 1], interior = [0, 0] : (tensor<4x2xf32>, tensor<f32>) -> tensor<4x7xf32>\n"
     "%b = stablehlo.pad %y, %z, low = [0, 1], high = [0, 3], interior = [0, 0] : (tensor<4x3xf32>, tensor<f32>) -> tensor<4x7xf32>\n"
     "%c = stablehlo.pad %u, %z, low = [0, 0], high = [0, 6], interior = [0, 0] : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x7xf32>\n"
     "%ab = stablehlo.add %a, %b : tensor<4x7xf32>\n%r = stablehlo.add %ab, %c : tensor<4x7xf32>"},
    {"pad(x, 0) + pad(y, 0)", "%x: " F ", %y: " F, "tensor<4x13x6xf32>", // by turns, and one of none
     "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
     "%x3 = stablehlo.reshape %x : (" F ") -> tensor<4x6x1xf32>\n%y3 = stablehlo.reshape %y : (" F ") -> tensor<4x6x1xf32>\n"
     "%xb = stablehlo.broadcast_in_dim %x3, dims = [0, 1, 2] : (tensor<4x6x1xf32>) -> tensor<4x6x6xf32>\n"
     "%yb = stablehlo.broadcast_in_dim %y3, dims = [0, 1, 2] : (tensor<4x6x1xf32>) -> tensor<4x6x6xf32>\n"
     "%a = stablehlo.pad %xb, %z, low = [0, 2, 0], high = [0, 0, 0], interior = [0, 1, 0] : (tensor<4x6x6xf32>, tensor<f32>) -> tensor<4x13x6xf32>\n"
     "%b = stablehlo.pad %yb, %z, low = [0, 1, 0], high = [0, 1, 0], interior = [0, 1, 0] : (tensor<4x6x6xf32>, tensor<f32>) -> tensor<4x13x6xf32>\n"
     "%r = stablehlo.add %a, %b : tensor<4x13x6xf32>"},
    {"x + scatter", "%x: tensor<5xf32>, %i: tensor<4x1xi32>, %u: tensor<4xf32>", "tensor<5xf32>",
     "%z = stablehlo.constant dense<0.0> : tensor<5xf32>\n" SCATTER("%z", "%i", "%u", "tensor<5xf32>", "tensor<4xf32>", PLACES)
     "%r = stablehlo.add %x, %s : tensor<5xf32>"},
    {"x - 0.0", "%x: " F, F, SPLAT("c", "0.0") "%r = stablehlo.subtract %x, %c : " F},
    {"scatter(0, u) - x", "%x: tensor<5xf32>, %i: tensor<4x1xi32>, %u: tensor<4xf32>", "tensor<5xf32>",
     "%z = stablehlo.constant dense<0.0> : tensor<5xf32>\n" SCATTER("%z", "%i", "%u", "tensor<5xf32>", "tensor<4xf32>", PLACES)
     "%r = stablehlo.subtract %s, %x : tensor<5xf32>"},
    {"scatter(0, u) - x", "%x: tensor<5xf32>, %i: tensor<4x1xi32>, %u: tensor<4xf32>", "tensor<5xf32>",
     "%z = stablehlo.constant dense<0.0> : tensor<5xf32>\n" SCATTER("%z", "%i", "%u", "tensor<5xf32>", "tensor<4xf32>", PLACES)
     "%r = stablehlo.subtract %x, %s : tensor<5xf32>"},
    {"gather of one a row", "%x: " F ", %v: tensor<4x1xf32>, %s: tensor<f32>, %i: tensor<4x1xi32>", "tensor<4xf32>",
     "%vs = stablehlo.broadcast_in_dim %v, dims = [0, 1] : (tensor<4x1xf32>) -> " F "\n%ss = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> " F "\n"
     "%d = stablehlo.subtract %x, %vs : " F "\n%e = stablehlo.divide %ss, %d : " F "\n"
     "%r = \"stablehlo.gather\"(%e, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], "
     "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (" F ", tensor<4x1xi32>) -> "
     "tensor<4xf32>"},
    {"scatter(0, one a row) *", "%v: tensor<4x1xf32>, %i: tensor<4x1xi32>, %u: tensor<4xf32>", F,
     PUT "%vs = stablehlo.broadcast_in_dim %v, dims = [0, 1] : (tensor<4x1xf32>) -> " F "\n%r = stablehlo.multiply %s, %vs : " F},
    {"sum of rows of scatter", "%i: tensor<4x1xi32>, %u: tensor<4xf32>", "tensor<4xf32>",
     PUT "%r = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [1] : (" F ", tensor<f32>) -> tensor<4xf32>"},
    {"max(x", "%x: " F, F, SPLAT("c", "0xFF800000") "%r = stablehlo.maximum %c, %x : " F},
    {"min(x", "%x: " F, F, SPLAT("c", "0x7F800000") "%r = stablehlo.minimum %x, %c : " F},
    {"x & true", "%p: tensor<4x6xi1>", "tensor<4x6xi1>",
     "%c = stablehlo.constant dense<true> : tensor<4x6xi1>\n %r = stablehlo.and %p, %c : tensor<4x6xi1>"},
    {"x | 0", "%x: tensor<7xi32>", "tensor<7xi32>", "%c = stablehlo.constant dense<0> : tensor<7xi32>\n %r = stablehlo.or %x, %c : tensor<7xi32>"},
    {"x ^ 0", "%x: tensor<7xi32>", "tensor<7xi32>", "%c = stablehlo.constant dense<0> : tensor<7xi32>\n %r = stablehlo.xor %c, %x : tensor<7xi32>"},
    {"gather of", "%x: " F ", %i: tensor<2x1xi32>", "tensor<2x6xbf16>",
     "%y = stablehlo.convert %x : (" F ") -> tensor<4x6xbf16>\n"
     "%r = \"stablehlo.gather\"(%y, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
     "index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>, indices_are_sorted = false}> : (tensor<4x6xbf16>, tensor<2x1xi32>) -> tensor<2x6xbf16>"},
    {"gather of", "%x: " F ", %i: tensor<2x1xi32>", "tensor<2xbf16>",
     "%n = stablehlo.convert %x : (" F ") -> tensor<4x6xbf16>\n %y = stablehlo.reshape %n : (tensor<4x6xbf16>) -> tensor<24xbf16>\n"
     "%r = \"stablehlo.gather\"(%y, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], "
     "index_vector_dim = 1>, slice_sizes = array<i64: 1>, indices_are_sorted = false}> : (tensor<24xbf16>, tensor<2x1xi32>) -> tensor<2xbf16>"},
    {"narrow(scatter", "%x: " F ", %i: tensor<4x1xi32>, %u: tensor<4xf32>", "tensor<2x12xbf16>",
     SCATTER("%x", "%i", "%u", F, "tensor<4xf32>", "scatter_dimension_numbers = #stablehlo.scatter<" A_ROW ">")
     "%f = stablehlo.reshape %s : (" F ") -> tensor<2x12xf32>\n %r = stablehlo.convert %f : (tensor<2x12xf32>) -> tensor<2x12xbf16>"},
    {"narrow(scatter", "%x: " F ", %i: tensor<4x1xi32>, %u: tensor<4xf32>", "tensor<4x6xbf16>",
     SCATTER("%x", "%i", "%u", F, "tensor<4xf32>",
             "scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], "
             "scatter_dims_to_operand_dims = [1], index_vector_dim = 1>")
     "%r = stablehlo.convert %s : (" F ") -> tensor<4x6xbf16>"},
#define SPREAD(name, of) "%" name " = stablehlo.broadcast_in_dim %" of ", dims = [0] : (tensor<4xf32>) -> " F "\n"
#define B "tensor<4x6xbf16>"
    {"(x / r) * number", "%x: " F ", %n: tensor<4xf32>", F,
     SPREAD("w", "n") SPLAT("c", "1.7") "%q = stablehlo.divide %x, %w : " F "\n %r = stablehlo.multiply %q, %c : " F},
    {"(x / r) / number", "%x: " F ", %n: tensor<4xf32>, %p: tensor<4x6xi1>", B,
     SPREAD("w", "n") "%c = stablehlo.constant dense<0.9> : " B "\n %z = stablehlo.constant dense<0.0> : " B "\n %q = stablehlo.divide %x, %w : " F
     "\n %b = stablehlo.convert %q : (" F ") -> " B "\n %s = stablehlo.select %p, %b, %z : tensor<4x6xi1>, " B "\n %r = stablehlo.divide %s, %c : " B},
    {"(x / number) * r", "%x: " F ", %n: tensor<4xf32>", F,
     SPREAD("w", "n") SPLAT("c", "0.7") "%q = stablehlo.divide %x, %c : " F "\n %r = stablehlo.multiply %q, %w : " F},
    {"(x / number) / r", "%x: " F ", %n: tensor<4xf32>", F,
     SPREAD("w", "n") SPLAT("c", "0.7") "%q = stablehlo.multiply %x, %c : " F "\n %r = stablehlo.divide %q, %w : " F},
    {"erfc that", "%x: tensor<64x128xf32>, %y: tensor<64x128xf32>", "tensor<64x128xf32>",
     "%e = chlo.erfc %x : tensor<64x128xf32> -> tensor<64x128xf32>\n %r = stablehlo.multiply %y, %e : tensor<64x128xf32>"},
    // turns: products on GpSimd too
    {"product: operands and result", "%x: tensor<4x6xi32>, %w: tensor<4x3xi32>", "tensor<6x3xi32>",
     "%y = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x6xi32>) -> tensor<6x4xi32>\n"
     "%r = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<6x4xi32>, tensor<4x3xi32>) -> tensor<6x3xi32>"},
    {"transpose of a product, and", "%x: " F ", %w: tensor<6x3xf32>", "tensor<3x4xf32>",
     "%y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (" F ", tensor<6x3xf32>) -> tensor<4x3xf32>\n"
     "%r = stablehlo.transpose %y, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>"},
    {"work on a transpose of a product", "%x: tensor<2x4x6xf32>, %w: tensor<2x6x3xf32>", "tensor<4x2x3xf32>",
     "%y = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x4x6xf32>, tensor<2x6x3xf32>) -> tensor<2x4x3xf32>\n"
     "%t = stablehlo.transpose %y, dims = [1, 0, 2] : (tensor<2x4x3xf32>) -> tensor<4x2x3xf32>\n %r = stablehlo.abs %t : tensor<4x2x3xf32>"},
    {"work on a transpose of a product", "%x: " F ", %w: tensor<4x3xf32>", "tensor<6x3xf32>", // or one for products
     "%t = stablehlo.transpose %x, dims = [1, 0] : (" F ") -> tensor<6x4xf32>\n %c = stablehlo.constant dense<0.3> : tensor<6x4xf32>\n"
     "%y = stablehlo.multiply %t, %c : tensor<6x4xf32>\n"
     "%r = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<6x4xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>"},
    {"product of a transpose", "%x: " F ", %w: tensor<4x3xf32>", "tensor<6x3xf32>",
     "%y = stablehlo.transpose %x, dims = [1, 0] : (" F ") -> tensor<6x4xf32>\n"
     "%r = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<6x4xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>"},
    // fold
    {"convert to its own", "%x: " F, F, "%r = stablehlo.convert %x : " F},
    {"reshape to its own", "%x: " F, F, "%r = stablehlo.reshape %x : (" F ") -> " F},
    {"bitcast_convert to its own", "%x: " F, F, "%r = stablehlo.bitcast_convert %x : (" F ") -> " F},
    {"transpose that moves nothing: its", "%x: " F, F, "%r = stablehlo.transpose %x, dims = [0, 1] : (" F ") -> " F},
    {"broadcast_in_dim that repeats nothing", "%x: " F, F, "%r = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (" F ") -> " F},
    {"an exact operation on constants", "%x: " F, F, SPLAT("c", "3.0") SPLAT("d", "0.1") "%e = stablehlo.divide %d, %c : " F "\n %r = stablehlo.add %x, %e : " F},
    {"an exact operation on constants", "%x: tensor<2xf32>", "tensor<2xf32>",
     "%c = stablehlo.constant dense<[1.0, -0.0]> : tensor<2xf32>\n %d = stablehlo.reverse %c, dims = [0] : tensor<2xf32>\n %r = stablehlo.multiply %x, %d : tensor<2xf32>"},
    // unroll
    {"while of few turns", "%x: " F, F,
     "%i = stablehlo.constant dense<0> : tensor<i32>\n %n = stablehlo.constant dense<3> : tensor<i32>\n %o = stablehlo.constant dense<1> : tensor<i32>\n"
     "%l:2 = stablehlo.while(%k = %i, %r = %x) : tensor<i32>, " F " cond { %c = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
     "stablehlo.return %c : tensor<i1> } do { %k1 = stablehlo.add %k, %o : tensor<i32>\n %y = stablehlo.multiply %r, %r : " F "\n"
     "stablehlo.return %k1, %y : tensor<i32>, " F " }\n %r = stablehlo.negate %l#1 : " F},
    // parts
#define L "tensor<64x64xf32>"
#define Z "tensor<64x64xcomplex<f32>>"
#define WHOLE "%z = stablehlo.complex %x, %y : " Z "\n"
#define BOTH(v) "%p = stablehlo.real " v " : (" Z ") -> " L "\n %q = stablehlo.imag " v " : (" Z ") -> " L "\n %r = stablehlo.concatenate %p, %q, dim = 0 : (" L ", " L ") -> tensor<128x64xf32>"
    {"real(complex", "%x: " F ", %y: " F, F, "%z = stablehlo.complex %x, %y : tensor<4x6xcomplex<f32>>\n %r = stablehlo.real %z : (tensor<4x6xcomplex<f32>>) -> " F},
    {"imag(complex", "%x: " F ", %y: " F, F, "%z = stablehlo.complex %x, %y : tensor<4x6xcomplex<f32>>\n %r = stablehlo.imag %z : (tensor<4x6xcomplex<f32>>) -> " F},
    {"complex product", "%x: " L ", %y: " L, "tensor<128x64xf32>", WHOLE "%w = stablehlo.multiply %z, %z : " Z "\n" BOTH("%w")},
    {"complex dot_general", "%x: tensor<2048x2xf32>, %y: tensor<2048x2xf32>, %u: tensor<2x3xf32>", "tensor<2048x3xf32>",
     "%z = stablehlo.complex %x, %y : tensor<2048x2xcomplex<f32>>\n %w = stablehlo.complex %u, %u : tensor<2x3xcomplex<f32>>\n"
     "%p = stablehlo.dot_general %z, %w, contracting_dims = [1] x [0] : (tensor<2048x2xcomplex<f32>>, tensor<2x3xcomplex<f32>>) -> tensor<2048x3xcomplex<f32>>\n"
     "%r = stablehlo.imag %p : (tensor<2048x3xcomplex<f32>>) -> tensor<2048x3xf32>"},
    {"complex(x) of real", "%x: " L, "tensor<128x64xf32>", "%w = stablehlo.convert %x : (" L ") -> " Z "\n" BOTH("%w")},
    {"conjugate", "%x: " L ", %y: " L, "tensor<128x64xf32>", WHOLE "%w = chlo.conj %z : " Z " -> " Z "\n" BOTH("%w")},
    {"complex sum along", "%x: " L ", %y: " L, "tensor<64xf32>",
     WHOLE "%n = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>\n"
     "%w = stablehlo.reduce(%z init: %n) applies stablehlo.add across dimensions = [1] : (" Z ", tensor<complex<f32>>) -> tensor<64xcomplex<f32>>\n"
     "%r = stablehlo.imag %w : (tensor<64xcomplex<f32>>) -> tensor<64xf32>"},
    {"complex sum, choice", "%x: " L ", %y: " L, "tensor<128x64xf32>",
     WHOLE "%t = stablehlo.transpose %z, dims = [1, 0] : (" Z ") -> " Z "\n %w = stablehlo.subtract %z, %t : " Z "\n" BOTH("%w")},
    // branches, counters, narrow
    {"select(p, a, f(", "%x: " F ", %y: " F ", %p: tensor<4x6xi1>", F,
     SPLAT("one", "1.0") "%g = stablehlo.select %p, %one, %x : tensor<4x6xi1>, " F "\n %s = stablehlo.divide %one, %g : " F
     "\n %r = stablehlo.select %p, %y, %s : tensor<4x6xi1>, " F},
    {"bits above what", "%x: tensor<40xi32>", "tensor<40xi32>",
     "%c = stablehlo.iota dim = 0 : tensor<40xui64>\n %n = stablehlo.constant dense<32> : tensor<40xui64>\n %u = stablehlo.shift_right_logical %c, %n : tensor<40xui64>\n"
     "%v = stablehlo.convert %u : (tensor<40xui64>) -> tensor<40xi32>\n %r = stablehlo.add %x, %v : tensor<40xi32>"},
    {"count of 64 bits", "%x: tensor<4x6xi32>", "tensor<4x6xi32>",
     "%i = stablehlo.iota dim = 0 : tensor<4x6xui64>\n %j = stablehlo.iota dim = 1 : tensor<4x6xui64>\n %n = stablehlo.constant dense<6> : tensor<4x6xui64>\n"
     "%m = stablehlo.multiply %i, %n : tensor<4x6xui64>\n %c = stablehlo.add %m, %j : tensor<4x6xui64>\n"
     "%v = stablehlo.convert %c : (tensor<4x6xui64>) -> tensor<4x6xi32>\n %r = stablehlo.add %x, %v : tensor<4x6xi32>"},
    {"compare of counts that", "%x: tensor<1xi32>", "tensor<4xi1>",
     "%i = stablehlo.iota dim = 0 : tensor<8xi32>\n %a = stablehlo.slice %i [0:4] : (tensor<8xi32>) -> tensor<4xi32>\n"
     "%b = stablehlo.slice %i [4:8] : (tensor<8xi32>) -> tensor<4xi32>\n"
     "%r = stablehlo.compare LT, %a, %b, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>"},
    {"pad, concatenate or gather of one number", "%x: tensor<2048xf32>", "tensor<4096xf32>",
     "%c = stablehlo.constant dense<3.0> : tensor<2047xf32>\n %n = stablehlo.constant dense<3.0> : tensor<f32>\n"
     "%p = stablehlo.pad %c, %n, low = [1], high = [0], interior = [0] : (tensor<2047xf32>, tensor<f32>) -> tensor<2048xf32>\n"
     "%q = stablehlo.concatenate %p, %p, dim = 0 : (tensor<2048xf32>, tensor<2048xf32>) -> tensor<4096xf32>\n"
     "%y = stablehlo.concatenate %x, %x, dim = 0 : (tensor<2048xf32>, tensor<2048xf32>) -> tensor<4096xf32>\n %r = stablehlo.add %y, %q : tensor<4096xf32>"},
    {"compare of two dimensions", "%x: tensor<1xi32>", "tensor<128x128xi1>",
     "%i = stablehlo.iota dim = 0 : tensor<128x128xi32>\n %j = stablehlo.iota dim = 1 : tensor<128x128xi32>\n %n = stablehlo.constant dense<-3> : tensor<128x128xi32>\n"
     "%k = stablehlo.add %i, %n : tensor<128x128xi32>\n %r = stablehlo.compare GE, %k, %j : (tensor<128x128xi32>, tensor<128x128xi32>) -> tensor<128x128xi1>"},
    {"elementwise work on broadcasts", "%x: tensor<6xf32>", F,
     SPLAT("c", "0.1") "%b = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<6xf32>) -> " F "\n %r = stablehlo.divide %b, %c : " F},
    // halves
    {"pad of nothing", "%x: " F, F,
     "%n = stablehlo.constant dense<0.1> : tensor<f32>\n %s = stablehlo.slice %x [0:4, 6:6] : (" F ") -> tensor<4x0xf32>\n"
     "%r = stablehlo.pad %s, %n, low = [0, 6], high = [0, 0], interior = [0, 0] : (tensor<4x0xf32>, tensor<f32>) -> " F},
    {"concatenate(f(a, b)", "%x: " F ", %c: tensor<3xf32>, %s: tensor<3xf32>", F,
     HALVES "%ac = stablehlo.multiply %a, %cs : " H "\n %bs = stablehlo.multiply %b, %ss : " H "\n %bc = stablehlo.multiply %b, %cs : " H "\n %as = stablehlo.multiply %a, %ss : " H
     "\n %p = stablehlo.subtract %ac, %bs : " H "\n %q = stablehlo.add %as, %bc : " H "\n %r = stablehlo.concatenate %p, %q, dim = 1 : (" H ", " H ") -> " F},
    {"concatenate(f(a, b)", "%x: " F ", %c: tensor<3xf32>, %s: tensor<3xf32>", F,
     HALVES "%n = stablehlo.negate %b : " H "\n %r = stablehlo.concatenate %n, %a, dim = 1 : (" H ", " H ") -> " F},
    {"(x * signs) * table", "%x: " F ", %t: tensor<6xf32>", F,
     "%c = stablehlo.constant dense<[-1.0, -1.0, -1.0, 1.0, 1.0, 1.0]> : tensor<6xf32>\n %n = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<6xf32>) -> " F
     "\n %y = stablehlo.multiply %x, %n : " F "\n %b = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<6xf32>) -> " F "\n %r = stablehlo.multiply %y, %b : " F},
    {"one end of rows and zeros", "%x: " H ", %y: " H, F,
     "%z = stablehlo.constant dense<0.0> : " H "\n %n = stablehlo.constant dense<0.0> : tensor<f32>\n %p = stablehlo.concatenate %z, %x, dim = 1 : (" H ", " H ") -> " F
     "\n %q = stablehlo.pad %y, %n, low = [0, 0], high = [0, 3], interior = [0, 0] : (" H ", tensor<f32>) -> " F "\n %r = stablehlo.add %p, %q : " F},
    // functions, dots, windows, inner
    {"sign:", "%x: tensor<32x32xf32>", "tensor<32x32xf32>", "%r = stablehlo.sign %x : tensor<32x32xf32>"},
    {"log(1 + x)", "%x: tensor<64x128xf32>", "tensor<64x128xf32>", "%r = stablehlo.log_plus_one %x : tensor<64x128xf32>"},
    {"exp(x) - 1", "%x: tensor<64x128xf32>", "tensor<64x128xf32>", "%r = stablehlo.exponential_minus_one %x : tensor<64x128xf32>"},
    {"dot:", "%x: " F ", %w: tensor<6x3xf32>", "tensor<4x3xf32>", "%r = stablehlo.dot %x, %w : (" F ", tensor<6x3xf32>) -> tensor<4x3xf32>"},
    {"dot_general: operands", "%x: tensor<2x2x2xf32>, %w: tensor<2x2x3xf32>", "tensor<2x3xf32>",
     "%r = stablehlo.dot_general %x, %w, contracting_dims = [2, 0] x [1, 0] : (tensor<2x2x2xf32>, tensor<2x2x3xf32>) -> tensor<2x3xf32>"},
    {"narrow(product of", "%x: tensor<4x6xbf16>, %w: tensor<6x3xbf16>", "tensor<3x4xbf16>",
     "%y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x6xbf16>, tensor<6x3xbf16>) -> " H
     "\n %t = stablehlo.transpose %y, dims = [1, 0] : (" H ") -> tensor<3x4xf32>\n %r = stablehlo.convert %t : (tensor<3x4xf32>) -> tensor<3x4xbf16>"},
    {"product without free", "%x: tensor<8192xf32>, %y: tensor<8192xf32>", "tensor<8192xf32>",
     "%xs = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<8192xf32>) -> tensor<2x8192xf32>\n %p = stablehlo.reshape %xs : (tensor<2x8192xf32>) -> tensor<8192x2xf32>\n"
     "%ys = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<8192xf32>) -> tensor<2x8192xf32>\n %q = stablehlo.reshape %ys : (tensor<2x8192xf32>) -> tensor<8192x2xf32>\n"
     "%r = stablehlo.dot_general %p, %q, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<8192x2xf32>, tensor<8192x2xf32>) -> tensor<8192xf32>"},
    {"product of short vectors", "%x: tensor<8192xf32>, %y: tensor<2xf32>", "tensor<8192x2xf32>",
     "%ys = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<2xf32>) -> tensor<8192x2xf32>\n"
     "%r = stablehlo.dot_general %x, %ys, batching_dims = [0] x [0], contracting_dims = [] x [] : (tensor<8192xf32>, tensor<8192x2xf32>) -> tensor<8192x2xf32>"},
    {"convolution by patches", "%x: tensor<2x1x3x4xf32>, %w: tensor<5x1x1x2xf32>", "tensor<2x5x3x2xf32>",
     "%r = \"stablehlo.convolution\"(%x, %w) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, feature_group_count = 1 : i64, "
     "window_strides = array<i64: 1, 2>}> : (tensor<2x1x3x4xf32>, tensor<5x1x1x2xf32>) -> tensor<2x5x3x2xf32>"},
    {"convolution by patches", "%x: tensor<4x1x3x3xf32>, %w: tensor<2x1x1x5xf32>", "tensor<3x2x5x3xf32>",
     "%r = \"stablehlo.convolution\"(%x, %w) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[0, f, 1, b]x[0, 1, i, o]->[b, 0, f, 1]>, feature_group_count = 1 : i64, "
     "rhs_dilation = array<i64: 2, 3>}> : (tensor<4x1x3x3xf32>, tensor<2x1x1x5xf32>) -> tensor<3x2x5x3xf32>"},
    {"Fourier transform", "%x: tensor<1024x8xf32>", "tensor<2048x5xf32>",
     "%y = stablehlo.concatenate %x, %x, dim = 0 : (tensor<1024x8xf32>, tensor<1024x8xf32>) -> tensor<2048x8xf32>\n"
     "%f = \"stablehlo.fft\"(%y) <{fft_length = array<i64: 8>, fft_type = #stablehlo<fft_type RFFT>}> : (tensor<2048x8xf32>) -> tensor<2048x5xcomplex<f32>>\n"
     "%r = stablehlo.imag %f : (tensor<2048x5xcomplex<f32>>) -> tensor<2048x5xf32>"},
    {"reduce_window beyond", "%x: " F, F,
     "%n = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
     "%r = \"stablehlo.reduce_window\"(%x, %n) <{window_dimensions = array<i64: 1, 3>, padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>}> ({ ^bb0(%a: tensor<f32>, "
     "%b: tensor<f32>): %t = stablehlo.maximum %a, %b : tensor<f32> \n stablehlo.return %t : tensor<f32> }) : (" F ", tensor<f32>) -> " F},
};
// Several terms for a place are summed in fp32 and rounded once: no rule may take this.
static const Case kept = {"", "%x: tensor<5xf32>, %i: tensor<4x1xi32>, %u: tensor<4xf32>", "tensor<5xbf16>",
                          SCATTER("%x", "%i", "%u", "tensor<5xf32>", "tensor<4xf32>", PLACES) "%r = stablehlo.convert %s : (tensor<5xf32>) -> tensor<5xbf16>"};

static const struct { const char *pass; const Rule *rules; } tables[] = {
    {"simplify", simplify_rules}, {"picks", picks_rules},         {"fold", fold_rules},         {"unroll", unroll_rules},
    {"parts", parts_rules},       {"branches", branches_rules},   {"counters", counters_rules}, {"narrow", narrow_rules},
    {"functions", functions_rules}, {"dots", dots_rules},         {"windows", windows_rules},   {"inner", inner_rules},
    {"turns", turns_rules},       {"halves", halves_rules},
};
enum { NTABLES = sizeof tables / sizeof *tables };

static const Rule *rule_of(const char *begin, const char **pass) {
    for (int t = 0; t < NTABLES; t++)
        for (const Rule *r = tables[t].rules; r->to; r++)
            if (!strncmp(r->name, begin, strlen(begin))) {
                *pass = tables[t].pass;
                return r;
            }
    return NULL;
}

static float special(uint64_t *seed) {
    static const float list[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, -3e-39f, 3.4e38f, -3.4e38f, 1.1754944e-38f, 1, -1e9f};
    uint32_t bits = (uint32_t)rng_next(seed);
    float any;
    memcpy(&any, &bits, 4);
    return rng_below(seed, 3) ? any : list[rng_below(seed, sizeof list / sizeof *list)];
}

static float plain(uint64_t *seed) { return ((float)rng_below(seed, 1 << 24) - (1 << 23)) * 0x1p-21f; }

static void fill(const Hlo *h, TypeId type, bool any, uint64_t *seed, uint8_t *data) {
    const HloType *t = hlo_type(h, type);
    for (int64_t i = 0; i < t->elems; i++) {
        if (t->dtype == DT_F32)
            ((float *)data)[i] = any ? special(seed) : plain(seed);
        else if (t->dtype == DT_I1)
            data[i] = rng_below(seed, 2);
        else
            ((int32_t *)data)[i] = (int32_t)rng_below(seed, 6) - 1; // an index, perhaps outside
    }
}

static bool same(int keeps, int dtype, const uint8_t *a, const uint8_t *b) {
    if (!dtype_is_float(dtype) || !memcmp(a, b, dtype_bytes(dtype)))
        return !memcmp(a, b, dtype_bytes(dtype));
    double x = dtype_to_f64(dtype, a), y = dtype_to_f64(dtype, b);
    if (x != x || y != y)
        return x != x && y != y;
    switch (keeps) {
    case RULE_ZERO:
        return x == y;
    case RULE_ORDER: // four terms of 4 at most
        return fabs(x - y) <= 4 * 20 * 0x1p-23;
    case RULE_TWICE: // of numbers up to 8, of products of such up to 32
        return fabs(x - y) <= (dtype == DT_F32 ? 32 * 0x1p-23 : 8 * 0x1p-7);
    case RULE_CLOSE: // times a factor of 4 at most
        return fabs(x - y) <= 4 * 2e-7 || fabs(x - y) <= 8 * 0x1p-24 * fabs(x);
    case RULE_LESS: // one rounding to bf16 less
        return fabs(x - y) <= (dtype == DT_BF16 ? 0x1p-7 : 8 * 0x1p-24) * fabs(x);
    default: // EXACT, RANGE
        return false;
    }
}

typedef struct Run {
    Ctx ctx;
    Arena arena, scratch;
    const Case *c;
    const Rule *rule;
    const char *pass;
    uint64_t *seed;
    bool changed, agrees;
} Run;

static Hlo *read_case(Run *r) {
    char text[4096];
    int n = snprintf(text, sizeof text, "func.func @main(%s) -> %s {\n%s\n return %%r : %s\n}\n", r->c->args, r->c->to, r->c->body, r->c->to);
    char *kept_text = arena_dup(&r->arena, text, (size_t)n + 1);
    Hlo *h = read_text(&r->ctx, &r->arena, "case", kept_text, (size_t)n);
    hlo_verify(h);
    return h;
}

static const char *printed(Run *r, Hlo *h) {
    Buf out = {.arena = &r->arena};
    hlo_print(h, &out, false);
    buf_put(&out, "", 1);
    return (const char *)out.at;
}

static void run_case(Run *r, int rounds) {
    Hlo *h[2] = {read_case(r), read_case(r)};
    const char *before = printed(r, h[1]);
    for (int i = 0; i < pass_count; i++)
        if (!strcmp(pass_rows[i].name, r->pass))
            pass_run(&pass_rows[i], &(Compile){.ctx = &r->ctx, .arena = &r->arena, .scratch = &r->scratch, .hlo = h[1]});
    hlo_verify(h[1]);
    r->changed = strcmp(before, printed(r, h[1]));
    bool any = !r->rule || r->rule->keeps <= RULE_ZERO;
    r->agrees = true;
    for (int round = 0; round < rounds; round++) {
        static _Alignas(64) uint8_t data[ARGS_MAX][ELEMS_MAX * 4];
        Tensor args[ARGS_MAX], out[2];
        for (int k = 0; k < 2; k++) {
            const HloRegion *body = &h[k]->regions.at[hlo_main(h[k])->body];
            for (uint32_t i = 0; i < body->nargs; i++) {
                args[i] = (Tensor){h[k]->values.at[body->args + i].type, data[i]};
                if (!k)
                    fill(h[0], args[i].type, any, r->seed, data[i]);
            }
            eval_func(h[k], &r->arena, hlo_main(h[k]), args, &out[k]);
        }
        const HloType *t = hlo_type(h[0], out[0].type);
        for (int64_t i = 0; i < t->elems; i++) {
            size_t at = (size_t)i * dtype_bytes(t->dtype);
            r->agrees = r->agrees && same(r->rule ? r->rule->keeps : RULE_EXACT, t->dtype, (uint8_t *)out[0].data + at, (uint8_t *)out[1].data + at);
        }
    }
}

static void try_case(const Case *c, const Rule *rule, const char *pass, int rounds, uint64_t *seed) {
    Run run = {.c = c, .rule = rule, .pass = pass, .seed = seed};
    Run *volatile r = &run;
    arena_init(&r->arena, &r->ctx);
    arena_init(&r->scratch, &r->ctx);
    jmp_buf here;
    const char *name = rule ? rule->name : "sums of several terms stay fp32";
    if (CTX_TRY(&r->ctx, here)) {
        run_case(r, rounds);
        expect(rule ? r->changed : !r->changed, name, rule ? "the rule does not see its program" : "a rule takes it");
        expect(r->agrees, name, "the results differ by more than its row says");
    } else {
        expect(false, name, r->ctx.err.text);
    }
    arena_fini(&r->arena);
    arena_fini(&r->scratch);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 200;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 17;
    size_t ncases = sizeof cases / sizeof *cases;
    const char *pass = tables[0].pass;
    for (int t = 0; t < NTABLES; t++)
        for (const Rule *r = tables[t].rules; r->to; r++) {
            bool tried = false;
            for (size_t k = 0; k < ncases; k++)
                tried = tried || rule_of(cases[k].rule, &pass) == r;
            expect(tried, r->name, "no program tries it");
        }
    for (size_t k = 0; k < ncases; k++) {
        const Rule *rule = rule_of(cases[k].rule, &pass);
        bool large = rule && rule->keeps == RULE_CLOSE;
        expect(rule, cases[k].rule, "there is no such rule");
        try_case(&cases[k], rule, pass, large ? 2 : rounds, &seed);
    }
    try_case(&kept, NULL, tables[0].pass, rounds, &seed);
    return failures != 0;
}
