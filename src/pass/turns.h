// SPDX-License-Identifier: Apache-2.0
// turns.h — what the two halves of the pass over transposes share: around products (turns.c), through what follows them (turns_sink.c).
#ifndef OTRN_PASS_TURNS_H
#define OTRN_PASS_TURNS_H

#include "hlo/users.h"
#include "pass/rules.h"

typedef struct Dims {
    uint32_t n;
    int64_t at[OTRN_MAX_RANK];
} Dims;

// A transpose of a product, or of what was computed from one, that may go behind whoever reads it; or all work on it is done in one order, tables included.
typedef enum Sink { SINK_NONE, SINK_ANY, SINK_ALL } Sink;

typedef struct Turns {
    Walk w; // first: rules are handed it
    Hlo *h;
    Users users;
    ValueId *made;      // per transpose there before the pass: the product it turns, turned
    VEC(uint8_t) sinks; // per value: a Sink
    uint8_t kind;       // of those that are marked now
} Turns;

Dims turns_dims(const HloOp *op, HloAttrKey key);                      // a list of dimensions
// The transpose of what `made` makes, which may go behind whoever reads it; that itself when nothing moves.
ValueId turns_behind(Turns *s, ValueId made, const Dims *perm);
ValueId turns_sink(Turns *s, const HloOp *op); // the op before the transpose of its operands; 0: it stays

#endif
