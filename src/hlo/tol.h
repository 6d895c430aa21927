// SPDX-License-Identifier: Apache-2.0
// tol.h — how far a chip result may be from the evaluator's: the one table.
#ifndef OTRN_HLO_TOL_H
#define OTRN_HLO_TOL_H

#include "base/dtype.h"

typedef struct TolRow {
    uint64_t ulps;    // units in the last place of the type; or else
    double rel, abs_; // |got - want| <= abs_ + rel * |want|
} TolRow;

// True when every element of got matches want; else *bad (when not NULL) is the first that does
// not. NaN matches NaN; an infinity matches only itself. Complex: both parts.
bool tol_close(int dtype, const void *got, const void *want, size_t elems, size_t *bad);
// Position of a float's bits on the number line; both zeros are 2^63.
uint64_t tol_line_position(int dtype, const void *p);

#endif
