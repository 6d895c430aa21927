// SPDX-License-Identifier: Apache-2.0
// mask.h — columns that a row program need not look at, because a mask known now makes them nothing.
#ifndef OTRN_TILE_MASK_H
#define OTRN_TILE_MASK_H

#include "pass/compile.h"

// Columns that tiles of 128 rows need, in whole tiles of 128 columns: mask_widths(…)[t] of [0, n) for rows 128 t … of m.
// NULL when the program has no such mask, or needs every column. `feeds`: results that only products read. idle: ops of
// the program that put zeros under the mask where zeros are, up to MASK_IDLE; 0 behind the last.
#define MASK_IDLE 4
const uint32_t *mask_widths(Compile *c, OpId rows, int64_t m, int64_t n, const bool *feeds, OpId idle[MASK_IDLE]);

#endif
