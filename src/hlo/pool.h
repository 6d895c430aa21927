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

PoolAxis pool_axis(const HloOp *op, uint32_t i, int64_t in, int64_t out); // of any op with windows
// The input position of an output position and a tap; -1: it is around the input, or between its elements.
static inline int64_t pool_at(const PoolAxis *a, int64_t out, int64_t tap) {
    int64_t p = out * a->stride + tap * a->gap - a->low;
    return p < 0 || p % a->in_gap || p / a->in_gap >= a->in ? -1 : p / a->in_gap;
}
// False when the op is no reduce_window, or none that the vector engine does: one float operand, a plain sum or extreme
// that begins with the neutral element, few taps.
bool pool_read(const Hlo *h, const HloOp *op, PoolForm *f);
bool pool_is_inside(const PoolForm *f); // no padding, no dilated input

#endif
