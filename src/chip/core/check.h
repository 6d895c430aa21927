// SPDX-License-Identifier: Apache-2.0
// check.h — watches a run: memory read before anything wrote it, and races between engines.
#ifndef OTRN_CHIP_CHECK_H
#define OTRN_CHIP_CHECK_H

#include "chip/core/check_pair.h"
#include "chip/core/chip.h"

typedef struct ChipCheck ChipCheck;
// For one run; raises NOMEM on the arena's context. Of a pair: by the thread of that core, whose turn it then is.
struct CommRank;
ChipCheck *chip_check_make(Arena *a, const Artifact *art, CheckPair *pair, const struct CommRank *comm);
// Before instruction pc is executed: OTRN_VERIFY and `why` when it reads what nothing wrote, or touches memory
// another engine may be at.
otrn_status chip_check_step(ChipCheck *c, uint32_t pc, const int64_t *regs, char *why, size_t why_bytes);
// After an instruction was executed that the other core of a pair may have had a part in.
bool chip_check_meets(const ChipCheck *c, uint32_t pc);
otrn_status chip_check_met(ChipCheck *c, uint32_t pc, const int64_t *regs, char *why, size_t why_bytes);

#endif
