// SPDX-License-Identifier: Apache-2.0
// mask.h — columns that a row program need not look at, because a mask known now makes them nothing.
#ifndef OTRN_PASS_MASK_H
#define OTRN_PASS_MASK_H

#include "pass/compile.h"

// Of tiles of 128 rows of m, columns of [0, n): those that count, in whole tiles of 128; those from the first on that count for all
// rows of the tile.
#define MASK_IDLE 4
#define MASK_NOTHING (-2e38) // f32's lowest number, and 0.7 of it: libraries mask with these and mean -inf
typedef struct Masked {
    const uint32_t *widths, *clear; // per tile of rows
    ValueId mask;                   // inside the program
    OpId idle[MASK_IDLE];           // its ops that put zeros under the mask where zeros are; 0 behind the last
    uint64_t leaves;                // mask_find_if: operands that have to be as assumed, as bits
} Masked;

// False when the program has no such mask, or needs every column. `feeds`: results that only products read.
bool mask_find(Compile *c, OpId rows, int64_t m, int64_t n, const bool *feeds, Masked *out);
// … if no number of the operands that out->leaves names is below -bound.
bool mask_find_if(Compile *c, OpId rows, int64_t m, int64_t n, const bool *feeds, double bound, Masked *out);

#endif
