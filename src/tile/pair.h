// SPDX-License-Identifier: Apache-2.0
// pair.h — a program's steps shared out over the two cores of a logical core.
#ifndef OTRN_TILE_PAIR_H
#define OTRN_TILE_PAIR_H

#include "tile/step.h"

enum { PAIR_BOTH = 2, PAIR_SHARED = 3 }; // who does a step, when it is not core 0 or 1 alone

typedef struct PairHull { // bytes of a buffer
    uint64_t lo, hi;
} PairHull;

typedef struct PairFoot { // what a step does to a buffer: by [core][0: reads, 1: writes]; when it is not shared, [0] is the doer's
    BufId buf;
    PairHull at[2][2];
    uint32_t next;
} PairFoot;

typedef struct Pair {
    uint8_t *core;      // per step: 0, 1; both, all of it (control); each a part
    bool *meets;        // per step: the cores meet before it, with everything complete
    uint32_t *round;    // per step, from 1, over the whole program; 0: control. The cores meet between rounds
    uint32_t *after[2]; // per step: the round whose meeting a core's accesses to HBM follow, 0 = none
    uint32_t *due;      // per step: the round whose meeting waits for its accesses, its own or, of a collective, a later one; 0 = none
    uint32_t rounds;
    uint32_t *feet;     // per step: its list, 0 = none
    VEC(PairFoot) foot; // slot 0 unused
    uint32_t cores;     // of the device
    bool is_split;      // false: one core does it all
    double one_ns, two_ns; // about what the steps take, one after the other and as shared; control flow is not counted
} Pair;

// Puts steps in another order, which keeps every value, and tells who does them. Buffers' lives are changed to match.
void pair_plan(Lower *l, const ChipFile *chip, Pair *out);
// Once every buffer has its place: fills `after` and `due`.
void pair_follow(Lower *l, Pair *p);

#endif
