// SPDX-License-Identifier: Apache-2.0
// profile.h — where the host's time goes while the chip executes, by kind of instruction.
#ifndef OTRN_CHIP_PROFILE_H
#define OTRN_CHIP_PROFILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/host.h"
#include "base/pool.h"
#include "isa/isa.h"

// Joined instructions (plan.h) are one kind, loads and products of the tensor engine another, and what threads spend
// without work while instructions flow (flow.h) a third.
enum { PROFILE_JOINED = ISA_OP_COUNT, PROFILE_WAITING, PROFILE_KINDS };
typedef struct ChipProfile {
    uint64_t count[PROFILE_KINDS]; // instructions
    double seconds[PROFILE_KINDS]; // on the clock of the wall; where instructions flow, the mean over the threads
    double flop;                   // of products
} ChipProfile;

void profile_add(ChipProfile *p, int kind, uint32_t instructions, double since);
// A table, and what share of the multipliers' rate products reached; measures that rate for some milliseconds.
void profile_print(const ChipProfile *p, HostLevel level, Pool *pool, FILE *out);

#endif
