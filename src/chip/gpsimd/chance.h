// SPDX-License-Identifier: Apache-2.0
// chance.h — GpSimd kernels whose results are rounded by chance.
#ifndef OTRN_CHIP_GP_CHANCE_H
#define OTRN_CHIP_GP_CHANCE_H

#include "chip/core/chip.h"

typedef struct GpChance { // a kernel, widened
    Kern wide;
    GpFn *fn;
    void **ptrs;
    size_t bytes; // of fp32 operands and results
} GpChance;

// NULL: the kernel writes no float narrower than f32, only moves numbers, or must see its types as they are.
GpChance *gp_chance_make(Arena *a, const Kern *k);
// Runs call->k that way; room has `bytes`, 64-byte aligned. The key is that of the instruction (base/round.h).
otrn_status gp_chance_run(const GpChance *g, const GpCall *call, uint8_t *room, uint32_t key);

#endif
