// SPDX-License-Identifier: Apache-2.0
// nest.h — positions walked in two tensors at once: what a move, a transpose or one side of a product is made of.
//
//   for i < n0, j < n1, …:   dst[dst + i * axis[0].dst + j * axis[1].dst …] = src[src + i * axis[0].src + …]
//
// Axes stand outermost first. Strides may be zero (a broadcast), negative (a reversal) and overlap (windows).
#ifndef OTRN_TILE_NEST_H
#define OTRN_TILE_NEST_H

#include "tile/area.h"

typedef struct Axis {
    int64_t n, src, dst; // positions; elements from one to the next in each tensor
} Axis;

typedef struct Nest {
    Axis axis[OTRN_MAX_RANK];
    int rank;
    int64_t src, dst; // offsets of the first, elements
} Nest;

void nest_strides(const HloType *t, int64_t *out); // of a tensor as it lies in HBM
void nest_join(Nest *n);                           // drops axes of one position, joins those that go on in one another on both sides
void nest_swap(Nest *n);                           // the other way
int64_t nest_size(const Nest *n);                  // positions
// Steps to the next position of the first `outer` axes; false: there is none.
bool nest_next(const Nest *n, int outer, int64_t *at);
void nest_at(const Nest *n, int outer, const int64_t *at, int64_t *src, int64_t *dst); // offsets of that position, elements
// Transfers between the two, four axes each; `term`: registers that stand in the addresses, or NULL.
typedef struct NestTerm {
    uint8_t reg[2];
    int32_t mul[2];
    bool on_dst;
    Haz *reads[2];
    uint32_t nreads;
} NestTerm;
void nest_put(Emit *e, const Nest *n, int engine, int queue, uint64_t src, uint64_t dst, int dtype, const NestTerm *term);

#endif
