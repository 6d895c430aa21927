// SPDX-License-Identifier: Apache-2.0
// twins.h — values of a loop that an earlier loop has had too.
#ifndef OTRN_PASS_TWINS_H
#define OTRN_PASS_TWINS_H

#include "pass/walk.h"

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
