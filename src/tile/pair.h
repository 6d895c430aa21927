// SPDX-License-Identifier: Apache-2.0
// pair.h — a program's steps shared out over the two cores of a logical core.
#ifndef OTRN_TILE_PAIR_H
#define OTRN_TILE_PAIR_H

#include "tile/step.h"

enum { PAIR_BOTH = 2, PAIR_SHARED = 3 }; // who does a step, when it is not core 0 or 1 alone

typedef struct Pair {
    uint8_t *core;      // per step: 0, 1; both, all of it (control); each a part
    bool *meets;        // per step: the cores meet before it
    bool is_split;      // false: one core does it all
} Pair;

// Puts steps in another order, which keeps every value, and tells who does them. Buffers' lives are changed to match.
void pair_plan(Lower *l, const ChipFile *chip, Pair *out);

#endif
