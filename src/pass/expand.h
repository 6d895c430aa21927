// SPDX-License-Identifier: Apache-2.0
// expand.h — what the files of the expand pass share.
#ifndef OTRN_PASS_EXPAND_H
#define OTRN_PASS_EXPAND_H

#include "pass/walk.h"

typedef struct Expand {
    Compile *c;
    Hlo *h;
    Walk w;
    OpId id;    // the op being replaced
} Expand;

ValueId expand_push(Expand *x, OpId id); // into the list; its first result
OpId expand_make(Expand *x, HloOpcode code, uint32_t n, const ValueId *in, TypeId type);
ValueId expand_zero(Expand *x, TypeId scalar);

// expand_more.c: replaces x->id and its results; false when it stays.
bool expand_more(Expand *x);
bool expand_rewrites(HloOpcode code); // ops it always replaces
void expand_groups(Compile *c); // expand_groups.c: groups told by mesh axes become lists of devices
void expand_body(Compile *c, RegionId body); // expand.c: what the pass does, to one function
// True when the program has an op that only this pass knows to evaluate.
bool expand_needed(const Hlo *h);

#endif
