// SPDX-License-Identifier: Apache-2.0
// lie.h — how a value lies on the devices of a program, and whole arrays cut by it and put together.
//
// Of an argument each device gets the part that its sharding names, and of the parts of a result the whole is put together; where
// several devices have the same part, they agree. Terms of a sum that is still to be made have no whole: such a value has the
// devices as its first dimension.
#ifndef OTRN_RT_LIE_H
#define OTRN_RT_LIE_H

#include "base/arena.h"
#include "base/ctx.h"

typedef struct Lie {
    otrn_type whole, part; // of one rank
    const uint32_t *slot;  // [device]: its part, of all in row-major order; NULL: every device has the whole
} Lie;

// From the text that artifacts keep (spec/artifact.md), as artifact_verify left it. Raises UNSUPPORTED.
Lie lie_arg(Ctx *ctx, Arena *a, const otrn_exe *exe, size_t i);
Lie lie_result(Ctx *ctx, Arena *a, const otrn_exe *exe, size_t i);
void lie_take(const Lie *l, uint32_t device, const void *whole, void *part); // the device's part of the whole
void lie_put(const Lie *l, uint32_t device, const void *part, void *whole);  // into the whole

#endif
