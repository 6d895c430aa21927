// SPDX-License-Identifier: Apache-2.0
// artifact_regs.h — loops found, and what values registers can have, going down the code.
#ifndef OTRN_ARTIFACT_REGS_H
#define OTRN_ARTIFACT_REGS_H

#include "artifact/artifact.h"

typedef struct RegRange {
    int64_t lo, hi;
    bool known;
} RegRange;

typedef struct CodeLoop { // a LOOP instruction and its ENDLOOP
    uint32_t begin, end;
    uint32_t outer;        // index + 1 of the loop around it, 0: none
    uint64_t writes;       // registers written inside, its counter included
    bool has_barrier, has_weights;
    uint64_t trips;        // 0: not known, or none
} CodeLoop;

typedef struct CodeLoops {
    uint32_t n;
    CodeLoop *at;
    uint32_t *inner;    // per instruction: index + 1 of the innermost loop that holds it
    uint8_t *is_target; // per instruction: a jump leads here
} CodeLoops;

// NULL, or what is wrong with the loops, and *pc where. A loop's own LOOP lies outside it, its ENDLOOP inside.
const char *code_loops(Arena *a, const Artifact *art, CodeLoops *out, uint32_t *pc);

typedef struct RegState {
    const CodeLoops *loops;
    RegRange r[ISA_REGS];
} RegState;
void regs_init(RegState *s, const CodeLoops *loops);     // all zero, as a run begins
void regs_enter(RegState *s, uint32_t pc);               // before instruction pc is looked at
void regs_step(RegState *s, const IsaInst *in, uint32_t pc); // after it
// Bounds of what an access's terms add, in bytes; false when a register is not known.
bool regs_terms(const RegState *s, const IsaAccess *a, __int128 *lo, __int128 *hi);

#endif
