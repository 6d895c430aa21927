// SPDX-License-Identifier: Apache-2.0
// check.h — watches a run: memory read before anything wrote it, and races between engines.
#ifndef OTRN_CHIP_CHECK_H
#define OTRN_CHIP_CHECK_H

#include "chip/chip.h"

typedef struct ChipCheck ChipCheck;
ChipCheck *chip_check_make(Arena *a, const Artifact *art); // for one run; raises NOMEM on the arena's context
// Before instruction pc is executed: OTRN_VERIFY and `why` when it reads what nothing wrote, or touches memory
// another engine may be at.
otrn_status chip_check_step(ChipCheck *c, uint32_t pc, const int64_t *regs, char *why, size_t why_bytes);

#endif
