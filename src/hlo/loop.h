// SPDX-License-Identifier: Apache-2.0
// loop.h — loops of known length.
#ifndef OTRN_HLO_LOOP_H
#define OTRN_HLO_LOOP_H

#include "pass/walk.h"

typedef struct LoopCount { // for (i = first; trips times; i += step)
    int64_t first, step, trips;
    uint32_t counter; // the carried value that i is
} LoopCount;

// The loop is `for (i = a; i < b; i += s)`, as scan and fori_loop write it, and i never wraps.
bool loop_count(const Hlo *h, const HloOp *op, LoopCount *out);
// Another set of carried values: which of them stay; new ones, what each begins with and its next one (a value of the body).
typedef struct LoopChange {
    bool *keep;
    ValueId *more, *next;
    uint32_t nmore;
} LoopChange;
// The loop with that set, in no region yet. Whoever read an argument or a result of one that stays is told by the walk; its regions
// have not been walked. New ones come last.
OpId loop_change(Compile *c, Walk *w, OpId id, const LoopChange *ch);
// Every number from lo to hi is one of the integer type, or of i1.
bool loop_number_fits(int dtype, __int128 lo, __int128 hi);

#endif
