// SPDX-License-Identifier: Apache-2.0
// layout.h — where the elements of a product's matrices lie: an index counted through axes with strides, and a matrix of two of those.
//
//   Layout   element i of (batch, row, column, …) is at the sum of index * stride over its axes, the last one fastest
//   Matrix   rows x columns of a tensor. In SBUF rows lie on the partitions, in tiles:   [tile][column]
//
// Strides may overlap (windows of a convolution) and be negative (a reversed kernel). A piece of a matrix comes in as few transfers as its
// axes allow: each takes a run of rows that has one stride (the partitions), evenly spaced tiles of them, and a box of columns whose axes are whole.
#ifndef OTRN_TILE_LAYOUT_H
#define OTRN_TILE_LAYOUT_H

#include "tile/nest.h"

typedef struct Layout { // axes that go on in one another are joined
    ViewAxis at[OTRN_MAX_RANK];
    int rank; // at least 1
    int64_t size;
} Layout;

typedef struct Matrix {
    Layout rows, cols;
} Matrix;

typedef struct Piece { // rows [row, row + rows), columns [col, col + cols)
    int64_t row, rows, col, cols;
    int64_t tile, pitch; // in SBUF: rows of a tile; elements from tile to tile
} Piece;

Layout layout_make(void); // of one element
void layout_add(Layout *v, int64_t n, int64_t stride); // an axis faster than those before
void layout_add_nest(Layout *v, const Nest *axes, bool dst);
Layout layout_of(const Nest *axes, bool dst);
int64_t layout_inner(const Layout *v, int from); // elements of the axes from there on
// The largest count up to `most` that ends where axes end, when it is not less than `least`.
int64_t layout_even(const Layout *v, int64_t most, int64_t least);
static inline const ViewAxis *layout_last(const Layout *v) { return &v->at[v->rank - 1]; }

static inline Matrix matrix_plain(int64_t rows, int64_t row_stride, int64_t cols, int64_t col_stride) {
    return (Matrix){{{{rows, row_stride}}, 1, rows}, {{{cols, col_stride}}, 1, cols}};
}

typedef void OnTransfer(void *arg, View hbm, View sbuf);
// Its type in HBM and in SBUF: transfers convert.
void matrix_transfers(const Matrix *m, Piece p, int dtype, uint64_t hbm, int near, Mem sbuf, OnTransfer *on, void *arg);
// From HBM to SBUF, or the other way.
void matrix_put(Emit *e, int queue, bool loads, const Matrix *m, Piece p, int dtype, uint64_t hbm, int near, Mem sbuf);
// The share of transfers that is left when evenly spaced tiles come together; 1: they do not.
double matrix_joined(const Matrix *m, int64_t tile, int64_t rows, int64_t cols);

// --- one operand of a matrix product, collapsed to batch, free and contracting strides -------------

typedef struct Side {
    int64_t free_size, free_stride, k_size, k_stride; // elements
    int64_t batch_dims[OTRN_MAX_RANK], batch_strides[OTRN_MAX_RANK];
    uint32_t nbatch;
} Side;

void side_init(Side *s, const Hlo *h, const HloOp *dot, bool rhs); // of a product as pass/dots.c leaves it
int64_t side_batches(const Side *s);
int64_t side_batch_offset(const Side *s, int64_t batch);           // elements
// A product's result, rows free and columns (k) dense: as it is, or as its transpose lies; false: that takes columns apart.
bool side_of_result(Side *s, const Hlo *h, const HloOp *dot, OpId transpose);

#endif
