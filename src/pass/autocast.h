// SPDX-License-Identifier: Apache-2.0
// autocast.h — what the options say about precision.
#ifndef OTRN_PASS_AUTOCAST_H
#define OTRN_PASS_AUTOCAST_H

#include "base/arena.h"
#include "base/opt.h"

// As the artifact has it: "matmult bf16 exponential=none"; "" when nothing is cast.
const char *autocast_text(Arena *a, const Options *o);

#endif
