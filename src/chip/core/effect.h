// SPDX-License-Identifier: Apache-2.0
// effect.h — what an instruction of the vector, scalar and gpsimd engines does to memory: one function each.
//
// chip.c finds the operands in host memory and calls; artifact_verify has checked that they fit.
#ifndef OTRN_CHIP_EFFECT_H
#define OTRN_CHIP_EFFECT_H

#include "chip/core/chip.h"

typedef struct EngineState { // what engines keep between instructions
    float vector_acc[PARTITIONS]; // accumulator registers, shared by the vector engine's reducers
    float scalar_acc[PARTITIONS];
    uint32_t rng[2][PARTITIONS][24]; // generator state: 0 vector, 1 gpsimd
    bool rng_ready;                      // they have their first seeds
    struct PeArray *pe;                  // NULL: nobody needs it
} EngineState;

typedef struct PeSlot { // weights of a tile of the array, as they came
    uint8_t data[ISA_PE_ROWS * ISA_PE_COLS * 4];
    uint8_t scale[ISA_PE_ROWS / 8][ISA_PE_COLS]; // MX
    uint32_t k, m, halves;
    int stype;
} PeSlot;
typedef struct PeArray {
    PeSlot slot[4][4]; // by the quarter a tile begins at
} PeArray;

typedef struct EffRound { // how results are rounded to narrower floats
    bool stochastic;      // else to nearest even
    uint64_t seed, instruction; // of the run; instructions executed so far
} EffRound;

typedef struct EffOperand {
    uint8_t *at;   // NULL: not given, or a number in the instruction
    int64_t pitch; // bytes between partitions; 0 in HBM, where axis 0 has a stride like the others
    bool local, nowhere; // EngTensor's
    uint8_t dtype;       // other than the instruction says, with the same values; 0: as it says
} EffOperand;

typedef struct EffCall {
    const IsaInst *in;
    EffOperand dst, src, src1, res, a, b;
    EngineState *state;
    Pool *pool;
    HostLevel level;
    struct CommRank *comm;
    const EffRound *round; // NULL: to nearest even
    struct EngJob *job;    // not NULL: only say what is to be done (eng_rows)
    char *why;
    size_t why_bytes;
} EffCall;

typedef otrn_status EffFn(const EffCall *c);
EffFn *effect_find(int op); // NULL: this instruction has none

#endif
