// SPDX-License-Identifier: Apache-2.0
// parts.h — what the files of the pass parts share.
#ifndef OTRN_PASS_PARTS_H
#define OTRN_PASS_PARTS_H

#include "pass/rules.h"

typedef struct Pair {
    ValueId re, im;
} Pair;

Pair parts_of(Walk *w, ValueId v); // of a complex tensor
RuleFn parts_fourier;              // fourier.c

#endif
