// SPDX-License-Identifier: Apache-2.0
// product.h — a product of two tensors that are read and written through strides: one emitter for all that the array multiplies tile by tile.
//
//   out[b][m][n] = sum over k of lhs[b][k][m] * rhs[b][k][n]
//
// b, k, m and n are lists of axes, each with its stride in the tensors that have it (layout.h). An axis list counts with its last axis fastest.
#ifndef OTRN_TILE_PRODUCT_H
#define OTRN_TILE_PRODUCT_H

#include "tile/dot_cut.h"
#include "tile/rows.h"

typedef struct Product {
    int stype, dtype;       // of the operands, of the result
    uint64_t lhs, rhs, out; // addresses of element 0
    Nest batch;             // src: lhs, dst: rhs
    int64_t batch_out[OTRN_MAX_RANK];
    Nest k; // src: lhs, dst: rhs; an axis of no elements makes a result of zeros
    Nest m; // src: lhs, dst: out
    Nest n; // src: rhs, dst: out
} Product;

enum { SUMS_NONE, SUMS_LHS, SUMS_RHS };

typedef struct ProductSums { // sums over k of an operand, which the array takes as it has it in SBUF
    uint8_t of;
    OpId op;             // what its instructions are counted for
    const HloAttr *each; // the number that all rows are multiplied by
    int dtype;           // of the result,
    uint64_t out;        // … which goes there
    RowOp *rows;         // … or what it goes through first
    int64_t lo, hi;      // columns of the operand whose sums this core takes
} ProductSums;

typedef struct ProductJob { // what of it, and what becomes of its tiles
    Emit *e;
    Product p;
    const HloAttr *same;                  // the number that all of lhs is; NULL: it lies there
    RowOp *rows;                          // what tiles go through where they leave PSUM, NULL: nothing
    int64_t beside;                       // … bytes that it loads and stores for an element
    ProductSums sums;
    int64_t together;                     // many small ones: so many of the batch side by side in a bank; 1: they are large
    int64_t rows_lo, rows_hi, n_lo, n_hi; // what of it this core does: rows of all batches, columns
    bool may_keep;                        // there is HBM for a transposed operand,
    uint64_t kept;                        // … there
} ProductJob;

ProductJob product_job(Emit *e, const Product *p); // all of it
bool product_comes_turned(const ProductJob *j, bool rhs); // transfers cannot transpose the operand: the array does
int64_t product_tile_k(const Layout *lhs, const Layout *rhs); // rows of a tile of k, which tell in which order it adds up
DotCut product_cut(const ProductJob *j);
uint32_t product_below(const ProductJob *j); // where the SBUF of its results begins
void product_emit(const ProductJob *j);
// SBUF below `below`, and above the row programs' area or from its beginning on.
Room product_room(const Emit *e, uint32_t below, bool borrows);

// --- convolutions whose windows are views of SBUF (slab.c) ------------------------------------------

// Place p and tap t of an axis meet element p * place + t * tap of the input, which is all inside it.
typedef struct SlabAxis {
    int64_t places, place, taps, tap;
    int64_t x, w, y; // strides: from element to element, tap to tap, place to place
} SlabAxis;

typedef struct Slab {
    int stype, dtype;    // of the operands, of the result
    uint64_t x, w, y;    // addresses of element 0
    SlabAxis depth, row, col;
    int64_t batch, batch_x, batch_y;
    int64_t ins, ins_x, ins_w, outs, outs_w, outs_y; // channels and their strides
} Slab;

// Nanoseconds it is likely to take on a chip, and its instructions; false: it does not suit any.
bool slab_cost(const ChipFile *c, const Slab *s, double *ns, int64_t *insts);
void slab_emit(Emit *e, const Slab *s);

// --- dot_general, and what its tiles go through where they leave PSUM (dot.c) ------------------------

Product dot_product(const Hlo *h, const HloOp *op, OpId stored_as); // its addresses are not known; stored_as: a transpose of it, 0: as it is
bool dot_fits_epilogue(Emit *e, const Epilogue *p);  // there is room in SBUF for both
// Bytes of HBM that a product wants for an operand it would transpose again and again; 0: none.
uint64_t dot_keeps(Emit *e, OpId dot, const DotSum *sum);
void epilogues_find(Lower *l); // epilogue.c: fills l->epilogues and l->epilogue_of
Product dot_of(const Lower *l, OpId dot, OpId stored_as); // … as it is done: a sum of rows goes over the parts that a row program left (rows_sums.c)
void row_sums_find(Lower *l); // rows_sums.c: fills l->row_sums and l->row_sum_of, by blocks and epilogues
void sums_find(Lower *l); // sums.c: fills l->sums and l->sum_of, by the epilogues
// What a product takes by the chip's prices, ns, with its row program and the sums that it takes along; 0: that does not fit.
double dot_ns(Emit *e, OpId dot, const DotSum *sum);

#endif
