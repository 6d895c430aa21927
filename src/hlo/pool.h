// SPDX-License-Identifier: Apache-2.0
// pool.h — a pooling operation's numbers.
#ifndef OTRN_HLO_POOL_H
#define OTRN_HLO_POOL_H

#include "hlo/hlo.h"

#define POOL_RANK_MAX 6
#define POOL_TAPS_MAX 64

// Output position o of an axis combines input positions o * stride + t * gap - low, t < window, of the input with in_gap - 1
// neutral elements between neighbours.
typedef struct PoolAxis {
    int64_t in, out, window, stride, gap, low, high, in_gap;
} PoolAxis;

typedef struct PoolForm {
    int rank;
    PoolAxis axis[POOL_RANK_MAX];
    uint16_t code; // ADD, MAXIMUM, MINIMUM
    int64_t taps;
} PoolForm;

// False when the op is no reduce_window, or none that the vector engine does: one float operand, a plain sum or extreme
// that begins with the neutral element, few taps.
bool pool_read(const Hlo *h, const HloOp *op, PoolForm *f);
bool pool_is_inside(const PoolForm *f); // no padding, no dilated input

#endif
