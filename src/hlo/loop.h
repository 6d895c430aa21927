// SPDX-License-Identifier: Apache-2.0
// loop.h — loops of known length.
#ifndef OTRN_HLO_LOOP_H
#define OTRN_HLO_LOOP_H

#include "hlo/users.h"

typedef struct LoopCount { // for (i = first; trips times; i += step)
    int64_t first, step, trips;
    uint32_t counter; // the carried value that i is
} LoopCount;

// The loop is `for (i = a; i < b; i += s)`, as scan and fori_loop write it, and i never wraps.
bool loop_count(const Hlo *h, const HloOp *op, LoopCount *out);
// The number, of the body, is each of 0 to n - 1 in one iteration, when they are n.
bool loop_goes_over(const Hlo *h, const HloOp *op, const LoopCount *count, ValueId v);
// The update by which the body puts a piece into carried value k, a stack, where nobody else reads it or what comes of it; NULL: it is none.
const HloOp *loop_stacks(const Users *u, const HloOp *loop, uint32_t k);

#endif
