// SPDX-License-Identifier: Apache-2.0
// nan.h — watches a run for the first instruction that makes a NaN, or an Inf, out of operands without one.
#ifndef OTRN_CHIP_NAN_H
#define OTRN_CHIP_NAN_H

#include "chip/core/chip.h"

typedef struct ChipNan ChipNan;

typedef struct NanView { // where the run's memories lie on the host
    uint8_t *const *segs;
    uint8_t *sbuf, *psum;
    size_t sbuf_pitch, psum_pitch;
} NanView;

// For one run: looks at the arguments and constants. also_inf: an Inf ends the run too.
ChipNan *chip_nan_make(Arena *a, const Artifact *art, const NanView *view, bool also_inf);
// Around the execution of instruction pc, with the registers as they are before it.
void chip_nan_before(ChipNan *n, uint32_t pc, const int64_t *regs);
otrn_status chip_nan_after(ChipNan *n, uint32_t pc, char *why, size_t why_bytes); // OTRN_CHECK and why

#endif
