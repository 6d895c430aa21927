// SPDX-License-Identifier: Apache-2.0
// turns.h — what the two halves of the pass over transposes share: around products (turns.c), through what follows them (turns_sink.c).
#ifndef OTRN_PASS_TURNS_H
#define OTRN_PASS_TURNS_H

#include "hlo/users.h"
#include "pass/walk.h"

typedef struct Dims {
    uint32_t n;
    int64_t at[OTRN_MAX_RANK];
} Dims;

typedef struct Turns {
    Compile *c;
    Hlo *h;
    Walk w;
    Users users;
    uint32_t known;     // values there before the pass
    ValueId *made;      // per transpose there before the pass: the product it turns, turned
    VEC(bool) sinks;    // per value: a transpose of a product, or of what was computed from one
} Turns;

Dims turns_dims(const HloOp *op, HloAttrKey key);                      // a list of dimensions
ValueId turns_make(Turns *s, ValueId v, const Dims *perm, LocId loc); // the transpose, or v itself when nothing moves
void turns_mark(Turns *s, ValueId v);                                 // … may go behind what reads it
ValueId turns_sink(Turns *s, OpId id); // the op before the transpose of its operands; 0: it stays

#endif
