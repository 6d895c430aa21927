// SPDX-License-Identifier: Apache-2.0
// loops.h — a loop that carries something else than it did.
#ifndef OTRN_PASS_LOOPS_H
#define OTRN_PASS_LOOPS_H

#include "pass/walk.h"

// Another set of carried values: which of them stay; new ones, what each begins with and its next one (a value of the body).
typedef struct LoopChange {
    bool *keep;
    ValueId *more, *next;
    uint32_t nmore;
} LoopChange;
// The loop with that set, in no region yet. Whoever read an argument or a result of one that stays is told by the walk; its regions
// have not been walked. New ones come last; a next one that updates what the new one begins with updates the carried value then.
OpId loop_change(Compile *c, Walk *w, OpId id, const LoopChange *ch);
// Stacks [n, …] of pieces […]: zeros to begin with, the piece at an index, the stack with a piece put there. What makes them goes to the list.
ValueId loop_new_stack(Walk *w, OpList *ops, ValueId piece, int64_t n, LocId loc);
ValueId loop_read_piece(Walk *w, OpList *ops, ValueId stack, ValueId index, TypeId piece, LocId loc);
ValueId loop_write_piece(Walk *w, OpList *ops, ValueId stack, ValueId piece, ValueId index, LocId loc);
// Stacks of values that a body widens hold what they were before, and whoever computes with a stack widens it: the same numbers,
// half the bytes. A gradient of weights is such a stack.
void loops_narrow_stacks(Compile *c);

#endif
