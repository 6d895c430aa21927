// SPDX-License-Identifier: Apache-2.0
// loop.h — loops of known length.
#ifndef OTRN_HLO_LOOP_H
#define OTRN_HLO_LOOP_H

#include "hlo/hlo.h"

typedef struct LoopCount { // for (i = first; trips times; i += step)
    int64_t first, step, trips;
    uint32_t counter; // the carried value that i is
} LoopCount;

// The loop is `for (i = a; i < b; i += s)`, as scan and fori_loop write it, and i never wraps.
bool loop_count(const Hlo *h, const HloOp *op, LoopCount *out);
// The number, of the body, is each of 0 to n - 1 in one iteration, when they are n.
bool loop_goes_over(const Hlo *h, const HloOp *op, const LoopCount *count, ValueId v);

#endif
