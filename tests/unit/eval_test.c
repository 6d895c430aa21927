// SPDX-License-Identifier: Apache-2.0
// eval_test.c — the evaluator on small programs that carry their own expectations, on operands that
// sit on the semantic edges, and on programs that must be refused.
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

// In generic form, so that the evaluator is tested and not the pretty printer's grammar.
#define C(v, t) "\"stablehlo.constant\"() {value = dense<" v "> : " t "} : () -> " t "\n"
#define EQ(x, v, t) "check.expect_eq_const " x ", dense<" v "> : " t "\n"

static const Case cases[] = {
    {"add f32 rounds once", OTRN_OK,
     "%a = " C("[16777216.0, 0.1]", "tensor<2xf32>") "%b = " C(
         "[1.0, 0.2]",
         "tensor<2xf32>") "%c = stablehlo.add %a, %b : tensor<2xf32>\n" EQ("%c",
                                                                           "[16777216.0, 0.3]",
                                                                           "tensor<2xf32>"),
     NULL},
    {"bf16 multiply rounds to even",
     OTRN_OK, // 1.0078125² = 1.01568604 lies between 1.015625 and 1.0234375
     "%a = " C("1.0078125", "tensor<bf16>") "%c = stablehlo.multiply %a, %a : tensor<bf16>\n" EQ(
         "%c", "1.015625", "tensor<bf16>"),
     NULL},
    {"i8 wraps, divides, shifts", OTRN_OK,
     "%a = " C("[127, -128, -128, 5]", "tensor<4xi8>") "%b = " C("[1, -1, 0, 9]", "tensor<4xi8>") "%s = stablehlo.add %a, %b : tensor<4xi8>\n" EQ("%s", "[-128, 127, -128, 14]", "tensor<4xi8>") "%d = stablehlo.divide %a, %b : tensor<4xi8>\n" EQ(
         "%d",
         "[127, -128, -1, 0]", "tensor<4xi8>") "%r = stablehlo.remainder %a, %b : "
                                               "tensor<4xi8>\n" EQ("%r", "[0, 0, -128, 5]",
                                                                   "tensor<4xi8>") "%l = "
                                                                                   "stablehlo."
                                                                                   "shift_left %a, "
                                                                                   "%b : "
                                                                                   "tensor<4xi8>"
                                                                                   "\n" EQ("%l",
                                                                                           "[-2, "
                                                                                           "0, "
                                                                                           "-128, "
                                                                                           "0]",
                                                                                           "tensor<"
                                                                                           "4xi8>") "%q = stablehlo.shift_right_arithmetic %a, %b : tensor<4xi8>\n" EQ("%q",
                                                                                                                                                                       "[63, -1, -128, 0]",
                                                                                                                                                                       "tensor<4xi8>") "%u = stablehlo.shift_right_logical %a, %b : tensor<4xi8>\n" EQ("%u",
                                                                                                                                                                                                                                                       "[63, 0, -128, 0]",
                                                                                                                                                                                                                                                       "tensor<4xi8>"),
     NULL},
    {"unsigned division and order", OTRN_OK,
     "%a = " C(
         "[200, 7]",
         "tensor<2xui8>") "%b = " C("[3, 0]",
                                    "tensor<2xui8>") "%d = stablehlo.divide %a, %b : "
                                                     "tensor<2xui8>\n" EQ("%d", "[66, 255]",
                                                                          "tensor<2xui8>") "%m = "
                                                                                           "stableh"
                                                                                           "lo."
                                                                                           "maximum"
                                                                                           " %a, "
                                                                                           "%b : "
                                                                                           "tensor<"
                                                                                           "2xui8>"
                                                                                           "\n" EQ("%m",
                                                                                                   "[200, 7]",
                                                                                                   "tensor<2xui8>"),
     NULL},
    {"integer power", OTRN_OK,
     "%a = " C("[2, -1, 1, 0, 3]", "tensor<5xi32>") "%b = " C(
         "[-1, -3, -7, 0, 21]",
         "tensor<5xi32>") "%p = stablehlo.power %a, %b : tensor<5xi32>\n" EQ("%p",
                                                                             "[0, -1, 1, 1, "
                                                                             "1870418611]",
                                                                             "tensor<5xi32>"),
     NULL},
    {"bool arithmetic is logic", OTRN_OK,
     "%a = " C("[true, true, false]", "tensor<3xi1>") "%b = " C(
         "[true, false, false]",
         "tensor<3xi1>") "%s = stablehlo.add %a, %b : tensor<3xi1>\n" EQ("%s",
                                                                         "[true, true, false]",
                                                                         "tensor<3xi1>") "%m = "
                                                                                         "stablehlo"
                                                                                         ".multiply"
                                                                                         " %a, %b "
                                                                                         ": "
                                                                                         "tensor<"
                                                                                         "3xi1>"
                                                                                         "\n" EQ("%"
                                                                                                 "m",
                                                                                                 "["
                                                                                                 "t"
                                                                                                 "r"
                                                                                                 "u"
                                                                                                 "e"
                                                                                                 ","
                                                                                                 " "
                                                                                                 "f"
                                                                                                 "a"
                                                                                                 "l"
                                                                                                 "s"
                                                                                                 "e"
                                                                                                 ","
                                                                                                 " "
                                                                                                 "f"
                                                                                                 "a"
                                                                                                 "l"
                                                                                                 "s"
                                                                                                 "e"
                                                                                                 "]",
                                                                                                 "t"
                                                                                                 "e"
                                                                                                 "n"
                                                                                                 "s"
                                                                                                 "o"
                                                                                                 "r"
                                                                                                 "<"
                                                                                                 "3"
                                                                                                 "x"
                                                                                                 "i"
                                                                                                 "1"
                                                                                                 ">") "%n = stablehlo.not %a : tensor<3xi1>\n" EQ("%n",
                                                                                                                                                  "[false, false, true]",
                                                                                                                                                  "tensor<3xi1>"),
     NULL},
    {"maximum keeps NaN", OTRN_OK,
     "%a = " C("[0x7FC00000, 1.0]", "tensor<2xf32>") "%b = " C(
         "[1.0, 2.0]",
         "tensor<2xf32>") "%m = stablehlo.maximum %a, %b : tensor<2xf32>\n"
                          "%f = stablehlo.is_finite %m : (tensor<2xf32>) -> tensor<2xi1>\n" EQ(
                              "%f", "[false, true]", "tensor<2xi1>"),
     NULL},
    {"convert saturates and truncates", OTRN_OK,
     "%a = " C(
         "[300.7, -300.7, 0x7FC00000, -0.9, 127.9]",
         "tensor<5xf32>") "%i = stablehlo.convert %a : (tensor<5xf32>) -> tensor<5xi8>\n" EQ("%i", "[127, -128, 0, 0, 127]", "tensor<5xi8>") "%u = stablehlo.convert %a : (tensor<5xf32>) -> tensor<5xui8>\n" EQ("%u",
                                                                                                                                                                                                                 "[255, 0, 0, 0, 127]",
                                                                                                                                                                                                                 "tensor<5xui8>") "%p = stablehlo.convert %a : (tensor<5xf32>) -> tensor<5xi1>\n" EQ("%p",
                                                                                                                                                                                                                                                                                                     "true", "tensor<5xi1>"),
     NULL},
    {"i64 to f32 rounds once",
     OTRN_OK, // 2^60 + 2^36 + 1: through double it would tie to even, down
     "%a = " C("1152921573326323713", "tensor<i64>") "%f = stablehlo.convert %a : (tensor<i64>) -> "
                                                     "tensor<f32>\n" EQ("%f", "0x5D800001",
                                                                        "tensor<f32>"),
     NULL},
    {"f64 to bf16 rounds once", OTRN_OK, // 1 + 2^-8 + 2^-40: through f32 it would tie to even, down
     "%a = " C("0x3FF0100000001000", "tensor<f64>") "%f = stablehlo.convert %a : (tensor<f64>) -> "
                                                    "tensor<bf16>\n" EQ("%f", "1.0078125",
                                                                        "tensor<bf16>"),
     NULL},
    {"bitcast splits little-endian", OTRN_OK,
     "%a = " C("0x01020304", "tensor<ui32>") "%b = stablehlo.bitcast_convert %a : (tensor<ui32>) "
                                             "-> tensor<4xui8>\n" EQ(
                                                 "%b", "[4, 3, 2, 1]",
                                                 "tensor<4xui8>") "%c = stablehlo.bitcast_convert "
                                                                  "%b : (tensor<4xui8>) -> "
                                                                  "tensor<ui32>\n" EQ("%c", "0x01020304",
                                                                                      "tensor<"
                                                                                      "ui32>"),
     NULL},
    {"reduce_precision", OTRN_OK, // 5 exponent, 2 mantissa bits: f8E5M2 without subnormals
     "%a = " C("[1.13, 70000.0, 1.0e-6, -0.0]", "tensor<4xf32>") "%b = "
                                                                 "\"stablehlo.reduce_precision\"(%"
                                                                 "a) {exponent_bits = 5 : i32, "
                                                                 "mantissa_bits = 2 : i32} : "
                                                                 "(tensor<4xf32>) -> "
                                                                 "tensor<4xf32>\n" EQ(
                                                                     "%b",
                                                                     "[1.25, 0x7F800000, 0.0, 0.0]",
                                                                     "tensor<4xf32>"),
     NULL},
    {"total order", OTRN_OK,
     "%a = " C("[0xFFC00000, -0.0, 0x7F800000]", "tensor<3xf32>") "%b = " C(
         "[0xFF800000, 0.0, 0x7FC00000]",
         "tensor<3xf32>") "%c = \"stablehlo.compare\"(%a, %b) {comparison_direction = "
                          "#stablehlo<comparison_direction LT>, compare_type = "
                          "#stablehlo<comparison_type TOTALORDER>} : (tensor<3xf32>, "
                          "tensor<3xf32>) -> tensor<3xi1>\n" EQ("%c", "true", "tensor<3xi1>"),
     NULL},
    {"clamp with scalar bounds", OTRN_OK,
     "%l = " C("0", "tensor<i32>") "%x = " C("[-3, 2, 9]", "tensor<3xi32>") "%h = " C(
         "5", "tensor<i32>") "%c = \"stablehlo.clamp\"(%l, %x, %h) : (tensor<i32>, tensor<3xi32>, "
                             "tensor<i32>) -> tensor<3xi32>\n" EQ("%c", "[0, 2, 5]",
                                                                  "tensor<3xi32>"),
     NULL},
    {"pad crops and dilates", OTRN_OK,
     "%x = " C("[1, 2, 3, 4]", "tensor<4xi32>") "%z = " C(
         "0",
         "tensor<i32>") "%p = \"stablehlo.pad\"(%x, %z) {edge_padding_low = array<i64: -1>, "
                        "edge_padding_high = array<i64: 2>, interior_padding = array<i64: 1>} : "
                        "(tensor<4xi32>, tensor<i32>) -> tensor<8xi32>\n" EQ("%p",
                                                                             "[0, 2, 0, 3, 0, 4, "
                                                                             "0, 0]",
                                                                             "tensor<8xi32>"),
     NULL},
    {"dynamic slices clamp", OTRN_OK,
     "%x = " C("[1, 2, 3, 4]", "tensor<4xi32>") "%i = " C(
         "9", "tensor<i64>") "%n = " C("-9",
                                       "tensor<i64>") "%s = \"stablehlo.dynamic_slice\"(%x, %i) "
                                                      "{slice_sizes = array<i64: 2>} : "
                                                      "(tensor<4xi32>, tensor<i64>) -> "
                                                      "tensor<2xi32>\n" EQ("%s", "[3, 4]",
                                                                           "tensor<2xi32>") "%u = "
                                                                                            "\"stab"
                                                                                            "lehlo."
                                                                                            "dynami"
                                                                                            "c_"
                                                                                            "update"
                                                                                            "_slice"
                                                                                            "\"(%x,"
                                                                                            " %s, "
                                                                                            "%n) : "
                                                                                            "(tenso"
                                                                                            "r<"
                                                                                            "4xi32>"
                                                                                            ", "
                                                                                            "tensor"
                                                                                            "<2xi32"
                                                                                            ">, "
                                                                                            "tensor"
                                                                                            "<i64>)"
                                                                                            " -> "
                                                                                            "tensor"
                                                                                            "<4xi32"
                                                                                            ">"
                                                                                            "\n" EQ("%u",
                                                                                                    "[3, 4, 3, 4]",
                                                                                                    "tensor<4xi32>"),
     NULL},
    {"reduce with a general body", OTRN_OK, // argmax as two streams
     "%x = " C("[3, 9, 9, 1]", "tensor<4xi32>") "%k = " C(
         "[0, 1, 2, 3]",
         "tensor<4xi32>") "%a = " C("-2147483648",
                                    "tensor<i32>") "%b = " C("0",
                                                             "tensor<i32>") "%r:2 = "
                                                                            "\"stablehlo.reduce\"(%"
                                                                            "x, %k, %a, %b) "
                                                                            "({\n^bb0(%0: "
                                                                            "tensor<i32>, %1: "
                                                                            "tensor<i32>, %2: "
                                                                            "tensor<i32>, %3: "
                                                                            "tensor<i32>):\n"
                                                                            "%4 = "
                                                                            "\"stablehlo.compare\"("
                                                                            "%0, %2) "
                                                                            "{comparison_direction "
                                                                            "= "
                                                                            "#stablehlo<comparison_"
                                                                            "direction GE>} : "
                                                                            "(tensor<i32>, "
                                                                            "tensor<i32>) -> "
                                                                            "tensor<i1>\n"
                                                                            "%5 = "
                                                                            "\"stablehlo.select\"(%"
                                                                            "4, %0, %2) : "
                                                                            "(tensor<i1>, "
                                                                            "tensor<i32>, "
                                                                            "tensor<i32>) -> "
                                                                            "tensor<i32>\n"
                                                                            "%6 = "
                                                                            "\"stablehlo.select\"(%"
                                                                            "4, %1, %3) : "
                                                                            "(tensor<i1>, "
                                                                            "tensor<i32>, "
                                                                            "tensor<i32>) -> "
                                                                            "tensor<i32>\n"
                                                                            "\"stablehlo.return\"(%"
                                                                            "5, %6) : "
                                                                            "(tensor<i32>, "
                                                                            "tensor<i32>) -> ()\n"
                                                                            "}) {dimensions = "
                                                                            "array<i64: 0>} : "
                                                                            "(tensor<4xi32>, "
                                                                            "tensor<4xi32>, "
                                                                            "tensor<i32>, "
                                                                            "tensor<i32>) -> "
                                                                            "(tensor<i32>, "
                                                                            "tensor<i32>)\n" EQ(
                                                                                "%r#0", "9",
                                                                                "tensor<i32>")
                                                                                EQ("%r#1",
                                                                                   "1", "tensor<i32>"),
     NULL},
    {"while keeps values that pass through",
     OTRN_OK, // b comes in from outside, then swaps with a fresh one
     "%i = " C("0", "tensor<i32>") "%a = " C("[1, 2]", "tensor<2xi32>") "%b = " C(
         "[5, 7]",
         "tensor<2xi32>") "%n = " C("5", "tensor<i32>") "%one = " C("1",
                                                                    "tensor<i32>") "%r:3 = "
                                                                                   "\"stablehlo."
                                                                                   "while\"(%i, "
                                                                                   "%a, %b) "
                                                                                   "({\n^bb0(%0: "
                                                                                   "tensor<i32>, "
                                                                                   "%1: "
                                                                                   "tensor<2xi32>, "
                                                                                   "%2: "
                                                                                   "tensor<2xi32>):"
                                                                                   "\n"
                                                                                   "%c = "
                                                                                   "\"stablehlo."
                                                                                   "compare\"(%0, "
                                                                                   "%n) "
                                                                                   "{comparison_"
                                                                                   "direction = "
                                                                                   "#stablehlo<"
                                                                                   "comparison_"
                                                                                   "direction LT>} "
                                                                                   ": "
                                                                                   "(tensor<i32>, "
                                                                                   "tensor<i32>) "
                                                                                   "-> tensor<i1>\n"
                                                                                   "\"stablehlo."
                                                                                   "return\"(%c) : "
                                                                                   "(tensor<i1>) "
                                                                                   "-> ()\n}, {\n"
                                                                                   "^bb0(%0: "
                                                                                   "tensor<i32>, "
                                                                                   "%1: "
                                                                                   "tensor<2xi32>, "
                                                                                   "%2: "
                                                                                   "tensor<2xi32>):"
                                                                                   "\n"
                                                                                   "%d = "
                                                                                   "stablehlo.add "
                                                                                   "%0, %one : "
                                                                                   "tensor<i32>\n%"
                                                                                   "f = "
                                                                                   "stablehlo.add "
                                                                                   "%1, %2 : "
                                                                                   "tensor<2xi32>\n"
                                                                                   "\"stablehlo."
                                                                                   "return\"(%d, "
                                                                                   "%2, %f) : "
                                                                                   "(tensor<i32>, "
                                                                                   "tensor<2xi32>, "
                                                                                   "tensor<2xi32>) "
                                                                                   "-> ()\n"
                                                                                   "}) : "
                                                                                   "(tensor<i32>, "
                                                                                   "tensor<2xi32>, "
                                                                                   "tensor<2xi32>) "
                                                                                   "-> "
                                                                                   "(tensor<i32>, "
                                                                                   "tensor<2xi32>, "
                                                                                   "tensor<2xi32>)"
                                                                                   "\n" EQ("%r#0", "5", "tensor<i32>") EQ(
                                                                                       "%r#1", "[28, 41]", "tensor<2xi32>")
                                                                                       EQ("%r#2", "[45, 66]", "tensor<2xi32>"),
     NULL},
    {"case out of range picks the last", OTRN_OK,
     "%i = " C("-1", "tensor<i32>") "%r = \"stablehlo.case\"(%i) ({\n%0 = " C(
         "1",
         "tensor<i32>") "\"stablehlo.return\"(%0) : (tensor<i32>) -> ()\n}, {\n%1 = " C("2",
                                                                                        "tensor<"
                                                                                        "i32>") "\""
                                                                                                "st"
                                                                                                "ab"
                                                                                                "le"
                                                                                                "hl"
                                                                                                "o."
                                                                                                "re"
                                                                                                "tu"
                                                                                                "rn"
                                                                                                "\""
                                                                                                "(%"
                                                                                                "1)"
                                                                                                " :"
                                                                                                " ("
                                                                                                "te"
                                                                                                "ns"
                                                                                                "or"
                                                                                                "<i"
                                                                                                "32"
                                                                                                ">)"
                                                                                                " -"
                                                                                                "> "
                                                                                                "()"
                                                                                                "\n"
                                                                                                "})"
                                                                                                " :"
                                                                                                " ("
                                                                                                "te"
                                                                                                "ns"
                                                                                                "or"
                                                                                                "<i"
                                                                                                "32"
                                                                                                ">)"
                                                                                                " -"
                                                                                                "> "
                                                                                                "te"
                                                                                                "ns"
                                                                                                "or"
                                                                                                "<i"
                                                                                                "32"
                                                                                                ">"
                                                                                                "\n" EQ("%r",
                                                                                                        "2",
                                                                                                        "tensor<i32>"),
     NULL},
    {"dot algorithm rounds its operands", OTRN_OK, // 1.00390625 is 1 in bf16 (tie to even)
     "%a = " C("[1.00390625, 1.0]", "tensor<2xf32>") "%b = " C(
         "[1.0, 2.0]",
         "tensor<2xf32>") "%d = \"stablehlo.dot_general\"(%a, %b) {dot_dimension_numbers = "
                          "#stablehlo.dot<lhs_contracting_dimensions = [0], "
                          "rhs_contracting_dimensions = [0]>, "
                          "algorithm = #stablehlo.dot_algorithm<lhs_precision_type = bf16, "
                          "rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count "
                          "= 1, "
                          "rhs_component_count = 1, num_primitive_operations = 1, "
                          "allow_imprecise_accumulation = false>} : (tensor<2xf32>, tensor<2xf32>) "
                          "-> tensor<f32>\n" EQ("%d", "3.0", "tensor<f32>"),
     NULL},
    {"three bf16 products restore f32", OTRN_OK,
     "%a = " C("[1.00390625, 1.0]", "tensor<2xf32>") "%b = " C(
         "[1.0, 2.0]",
         "tensor<2xf32>") "%d = \"stablehlo.dot_general\"(%a, %b) {dot_dimension_numbers = "
                          "#stablehlo.dot<lhs_contracting_dimensions = [0], "
                          "rhs_contracting_dimensions = [0]>, "
                          "algorithm = #stablehlo.dot_algorithm<lhs_precision_type = bf16, "
                          "rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count "
                          "= 1, "
                          "rhs_component_count = 1, num_primitive_operations = 3, "
                          "allow_imprecise_accumulation = false>} : (tensor<2xf32>, tensor<2xf32>) "
                          "-> tensor<f32>\n" EQ("%d", "3.00390625", "tensor<f32>"),
     NULL},
    {"batch groups of a convolution", OTRN_OK,
     "%x = " C("[[[1.0]], [[2.0]]]", "tensor<2x1x1xf32>") "%k = " C(
         "[[[3.0]], [[5.0]]]",
         "tensor<2x1x1xf32>") "%c = \"stablehlo.convolution\"(%x, %k) {dimension_numbers = "
                              "#stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, "
                              "batch_group_count = 2 : i64, feature_group_count = 1 : i64} : "
                              "(tensor<2x1x1xf32>, tensor<2x1x1xf32>) -> tensor<1x2x1xf32>\n" EQ(
                                  "%c", "[[[3.0], [10.0]]]", "tensor<1x2x1xf32>"),
     NULL},
    {"cholesky and solve", OTRN_OK,
     "%a = " C("[[4.0, 9.0], [2.0, 10.0]]", "tensor<2x2xf64>") "%l = \"stablehlo.cholesky\"(%a) "
                                                               "{lower = true} : (tensor<2x2xf64>) "
                                                               "-> tensor<2x2xf64>\n" EQ("%l", "[[2.0, 0.0], [1.0, 3.0]]", "tensor<2x2xf64>") "%b = " C(
                                                                   "[[2.0], [7.0]]",
                                                                   "tensor<2x1xf64>") "%x = "
                                                                                      "\"stablehlo."
                                                                                      "triangular_"
                                                                                      "solve\"(%l, "
                                                                                      "%b) "
                                                                                      "{left_side "
                                                                                      "= true, "
                                                                                      "lower = "
                                                                                      "true, "
                                                                                      "unit_"
                                                                                      "diagonal = "
                                                                                      "false, "
                                                                                      "transpose_a "
                                                                                      "= "
                                                                                      "#stablehlo<"
                                                                                      "transpose "
                                                                                      "NO_"
                                                                                      "TRANSPOSE>} "
                                                                                      ": "
                                                                                      "(tensor<"
                                                                                      "2x2xf64>, "
                                                                                      "tensor<"
                                                                                      "2x1xf64>) "
                                                                                      "-> "
                                                                                      "tensor<"
                                                                                      "2x1xf64>"
                                                                                      "\n" EQ("%x",
                                                                                              "[[1."
                                                                                              "0], "
                                                                                              "[2."
                                                                                              "0]]",
                                                                                              "tens"
                                                                                              "or<"
                                                                                              "2x1x"
                                                                                              "f64"
                                                                                              ">"),
     NULL},
    {"fft of a delta and back", OTRN_OK,
     "%a = " C("[0.0, 1.0, 0.0, 0.0, 0.0, 0.0]",
               "tensor<6xf64>") "%f = \"stablehlo.fft\"(%a) {fft_type = #stablehlo<fft_type RFFT>, "
                                "fft_length = array<i64: 6>} : (tensor<6xf64>) -> "
                                "tensor<4xcomplex<f64>>\n"
                                "%b = \"stablehlo.fft\"(%f) {fft_type = #stablehlo<fft_type "
                                "IRFFT>, fft_length = array<i64: 6>} : (tensor<4xcomplex<f64>>) -> "
                                "tensor<6xf64>\n"
                                "check.expect_almost_eq_const %b, dense<[0.0, 1.0, 0.0, 0.0, 0.0, "
                                "0.0]> : tensor<6xf64>\n",
     NULL},
    {"batch_norm_training", OTRN_OK,
     "%x = " C("[[1.0, 10.0], [3.0, 30.0]]", "tensor<2x2xf32>") "%s = " C(
         "2.0",
         "tensor<2xf32>") "%o = " C("1.0",
                                    "tensor<2xf32>") "%r:3 = \"stablehlo.batch_norm_training\"(%x, "
                                                     "%s, %o) {epsilon = 0.0 : f32, feature_index "
                                                     "= 1 : i64} : (tensor<2x2xf32>, "
                                                     "tensor<2xf32>, tensor<2xf32>) -> "
                                                     "(tensor<2x2xf32>, tensor<2xf32>, "
                                                     "tensor<2xf32>)\n" EQ("%r#0",
                                                                           "[[-1.0, -1.0], [3.0, "
                                                                           "3.0]]",
                                                                           "tensor<2x2xf32>")
                                                         EQ("%r#1", "[2.0, 20.0]", "tensor<2xf32>")
                                                             EQ("%r#2", "[1.0, 100.0]",
                                                                "tensor<2xf32>"),
     NULL},
    {"empty tensors", OTRN_OK,
     "%x = " C("", "tensor<0x3xf32>") "%z = " C(
         "7.0",
         "tensor<f32>") "%r = \"stablehlo.reduce\"(%x, %z) ({\n^bb0(%0: tensor<f32>, %1: "
                        "tensor<f32>):\n%2 = stablehlo.add %0, %1 : tensor<f32>\n"
                        "\"stablehlo.return\"(%2) : (tensor<f32>) -> ()\n}) {dimensions = "
                        "array<i64: 0>} : (tensor<0x3xf32>, tensor<f32>) -> tensor<3xf32>\n" EQ(
                            "%r", "7.0", "tensor<3xf32>"),
     NULL},
    {"composite runs its decomposition", OTRN_OK,
     "module {\nfunc.func private @twice(%a: tensor<i32>) -> tensor<i32> {\n%0 = stablehlo.add %a, "
     "%a : tensor<i32>\nreturn %0 : tensor<i32>\n}\n"
     "func.func @main() {\n%a = " C(
         "4",
         "tensor<i32>") "%b = \"stablehlo.composite\"(%a) {name = \"my.twice\", decomposition = "
                        "@twice} : (tensor<i32>) -> tensor<i32>\n" EQ("%b", "8",
                                                                      "tensor<i32>") "return\n}\n}",
     NULL},

    // must fail
    {"a failing check names the element", OTRN_CHECK,
     "%a = " C("[[1, 2], [3, 4]]", "tensor<2x2xi32>")
         EQ("%a", "[[1, 2], [5, 4]]", "tensor<2x2xi32>"),
     "element [1, 0] is 3, expected 5"},
    {"recursion is refused", OTRN_UNSUPPORTED,
     "module {\nfunc.func private @f() {\ncall @f() : () -> ()\nreturn\n}\nfunc.func @main() "
     "{\ncall @f() : () -> ()\nreturn\n}\n}",
     "calls itself"},
    {"unknown custom call", OTRN_UNSUPPORTED,
     "%a = " C(
         "1",
         "tensor<i32>") "%b = stablehlo.custom_call @nobody(%a) : (tensor<i32>) -> tensor<i32>\n",
     "@nobody"},
    {"collectives are refused", OTRN_UNSUPPORTED,
     "%a = " C("1.0",
               "tensor<f32>") "%b = \"stablehlo.all_reduce\"(%a) ({\n^bb0(%0: tensor<f32>, %1: "
                              "tensor<f32>):\n%2 = stablehlo.add %0, %1 : tensor<f32>\n"
                              "\"stablehlo.return\"(%2) : (tensor<f32>) -> ()\n}) {replica_groups "
                              "= dense<0> : tensor<1x1xi64>} : (tensor<f32>) -> tensor<f32>\n",
     "all_reduce"},
    {"slice out of bounds", OTRN_VERIFY,
     "%a = " C("[1, 2, 3]",
               "tensor<3xi32>") "%b = \"stablehlo.slice\"(%a) {start_indices = array<i64: 2>, "
                                "limit_indices = array<i64: 5>, strides = array<i64: 1>} : "
                                "(tensor<3xi32>) -> tensor<3xi32>\n",
     "slice out of bounds"},
    {"wrong dot shape", OTRN_VERIFY,
     "%a = " C("1.0",
               "tensor<2x3xf32>") "%d = \"stablehlo.dot_general\"(%a, %a) {dot_dimension_numbers = "
                                  "#stablehlo.dot<lhs_contracting_dimensions = [1], "
                                  "rhs_contracting_dimensions = [0]>} : (tensor<2x3xf32>, "
                                  "tensor<2x3xf32>) -> tensor<2x3xf32>\n",
     "contracted dimensions differ"},
};

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
    const char *text = "module {\nfunc.func @main() {\n%i = " C("0", "tensor<i32>") "%x = " C(
        "1.0",
        "tensor<65536xf32>") "%n = " C("300",
                                       "tensor<i32>") "%one = " C("1",
                                                                  "tensor<i32>") "%r:2 = "
                                                                                 "\"stablehlo."
                                                                                 "while\"(%i, %x) "
                                                                                 "({\n^bb0(%0: "
                                                                                 "tensor<i32>, %1: "
                                                                                 "tensor<65536xf32>"
                                                                                 "):\n"
                                                                                 "%c = "
                                                                                 "\"stablehlo."
                                                                                 "compare\"(%0, "
                                                                                 "%n) "
                                                                                 "{comparison_"
                                                                                 "direction = "
                                                                                 "#stablehlo<"
                                                                                 "comparison_"
                                                                                 "direction LT>} : "
                                                                                 "(tensor<i32>, "
                                                                                 "tensor<i32>) -> "
                                                                                 "tensor<i1>\n"
                                                                                 "\"stablehlo."
                                                                                 "return\"(%c) : "
                                                                                 "(tensor<i1>) -> "
                                                                                 "()\n}, "
                                                                                 "{\n^bb0(%0: "
                                                                                 "tensor<i32>, %1: "
                                                                                 "tensor<65536xf32>"
                                                                                 "):\n"
                                                                                 "%d = "
                                                                                 "stablehlo.add "
                                                                                 "%0, %one : "
                                                                                 "tensor<i32>\n%f "
                                                                                 "= stablehlo.add "
                                                                                 "%1, %1 : "
                                                                                 "tensor<65536xf32>"
                                                                                 "\n"
                                                                                 "%g = "
                                                                                 "stablehlo."
                                                                                 "subtract %f, %1 "
                                                                                 ": "
                                                                                 "tensor<65536xf32>"
                                                                                 "\n"
                                                                                 "\"stablehlo."
                                                                                 "return\"(%d, %g) "
                                                                                 ": (tensor<i32>, "
                                                                                 "tensor<65536xf32>"
                                                                                 ") -> ()\n"
                                                                                 "}) : "
                                                                                 "(tensor<i32>, "
                                                                                 "tensor<65536xf32>"
                                                                                 ") -> "
                                                                                 "(tensor<i32>, "
                                                                                 "tensor<65536xf32>"
                                                                                 ")\n" EQ(
                                                                                     "%r#0", "300",
                                                                                     "tensor<i32>")
                                                                                     EQ("%r#1",
                                                                                        "1.0",
                                                                                        "tensor<"
                                                                                        "65536xf32"
                                                                                        ">") "retur"
                                                                                             "n\n}"
                                                                                             "\n}";
    bool ok = false;
    if (CTX_TRY(&ctx, jb)) {
        Hlo *h = read_text(&ctx, &a, "loop", text, strlen(text));
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
        ok = ok && eval_has(HLO_ADD) && !eval_has(HLO_ALL_REDUCE);
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
