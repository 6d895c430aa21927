// SPDX-License-Identifier: Apache-2.0
// pass.h — the pass list is the architecture: name, function, one-line purpose, in order.
#ifndef OTRN_PASS_PASS_H
#define OTRN_PASS_PASS_H

#include "hlo/hlo.h"

typedef struct Compile { // one compilation
    Ctx *ctx;
    Arena *arena;   // lives until the artifact is written
    Arena *scratch; // reset after each pass
    Hlo *hlo;
} Compile;

typedef void PassFn(Compile *c);
typedef struct PassRow {
    const char *name;
    PassFn *fn;
    const char *purpose;
} PassRow;
extern const PassRow pass_rows[];
extern const int pass_count;

#endif
