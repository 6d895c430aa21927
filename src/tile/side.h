// SPDX-License-Identifier: Apache-2.0
// side.h — one operand of a matrix product, collapsed to batch, free and contracting strides.
#ifndef OTRN_TILE_SIDE_H
#define OTRN_TILE_SIDE_H

#include "hlo/hlo.h"

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
