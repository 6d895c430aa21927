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

// --- values of a loop that an earlier loop has had too (twins.c) ------------------------------------

//   for i: y = f(x) …; Y[i] = y; O[i] = g(y)       for j: y' = Y[n-1-j] …, or f(X[n-1-j]);  o' = O[n-1-j]
//
// y' is the twin of y: in the iteration of the second loop that reads pieces k it has the elements that y had in iteration k of the first.
typedef struct Twins {
    const Users *u;
    RegionId first, second; // bodies
    ValueId index;    // of the second: which pieces it reads
    ValueId *of;      // per value of the second: the one of the first, before its reshapes; 0: none
    uint32_t nvalues; // that there were
} Twins;

// Of loops of one region, the first before the second; false: they share nothing.
bool twins_find(Twins *t, Compile *c, const Users *u, OpId first, OpId second);
bool twins_are(const Twins *t, ValueId second, ValueId first); // of the same shape, too
// A value of the second loop that has the elements of one of the first, in the same shape, and stands before the op; 0: none.
ValueId twins_there(const Twins *t, ValueId v, OpId before);
// What reshapes make the value of, as far as that is of the same shape: the same value in other words.
ValueId twins_plain(const Hlo *h, ValueId v);

#endif
