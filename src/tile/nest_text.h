// SPDX-License-Identifier: Apache-2.0
// nest_text.h — what a step does as nests: printed (--dump=nest), read back, verified.
//
//   move f32 in0[0] -> out0[0] (32:1:16, 16:32:1)                         positions : elements apart in src : in dst
//   product bf16 -> f32 in0[0] in1[0] -> out0[0] b(4:8:8:4) k(64:1:128) m(32:64:128) n(128:1:1)
//
//   product   out[b][m][n] = sum over k of lhs[b][k][m] * rhs[b][k][n];   b n:lhs:rhs:out   k n:lhs:rhs   m n:lhs:out   n n:rhs:out
//
// A program may begin there: the custom call "otrn.nest" has such lines in its backend_config, in0… are its operands, out0… its results.
#ifndef OTRN_TILE_NEST_TEXT_H
#define OTRN_TILE_NEST_TEXT_H

#include "tile/product.h"

#define NEST_CALL "otrn.nest"

typedef struct NestOp {
    bool is_product;
    uint32_t in[2], out;        // which operands and which result of the step
    int64_t off[2], out_off;    // where they begin, elements
    Nest move;
    Product p;                  // its addresses are not yet known; types of moves too
} NestOp;

typedef void NestEach(void *arg, const NestOp *n);
void move_nests(const Hlo *h, const HloOp *op, NestEach *on, void *arg); // move.c: also of transposes
void conv_nests(const Hlo *h, const HloOp *op, NestEach *on, void *arg); // conv.c
void step_print(const Lower *l, const Step *s, Buf *out); // its number, kind, operation and buffers, as a comment
void nests_print(const Lower *l, Buf *out);  // all steps

#endif
