// SPDX-License-Identifier: Apache-2.0
// effect_ew.h — what jobs of effect_ew.c and effect_select.c hold, for those who join them (chain.c).
#ifndef OTRN_CHIP_EFFECT_EW_H
#define OTRN_CHIP_EFFECT_EW_H

#include "chip/core/effects.h"

enum { BY_NONE, BY_A, BY_B, BY_SRC1 };
typedef struct EwStage {
    EngAlu *alu; // or
    EngFn *fn;
    EngAlu2 *pair; // this stage and the next in one pass; NULL: each by itself
    uint8_t op, by;
    bool reverse;
    EngAluOne *one; // with one value for a row; NULL: as alu says
} EwStage;

typedef struct Ew {
    EngWalk walk;
    EngTensor dst, src, src1;
    EngScalar a, b;
    EwStage stage[3];
    int nstages;
    float parameter; // of prelu
    EffReg reg;
    EngRun *run; // into the register; NULL: none
    bool gathers; // the register, or res, has a part in it
    EngRun *run_bf16; // of a source that is one run of bf16 and nothing else to do; NULL: by run
    bool same;   // bits from src to dst
    EngAlu *in_place; // tensor_tensor on operands of one type, each a run; NULL: through blocks
    EngFn16 *bf16_fn; // likewise of a function alone,
    EngOne16 *one16;  // and of a value for each row
    EngExp *exp;      // of src times and plus a number, and its sum: all in one pass; NULL: by stages
    EngPairOnes *ones; // of stages 0 and 1, or
    EngPairOne *pair_one;
} Ew;

typedef struct Select {
    EngWalk walk;
    const IsaInst *in;
    EngTensor dst, src, src1;
    EngScalar a, b;
    EffReg reg;
    EngRun *run;
    bool src_given, reverse, gathers;
} Select;

typedef struct Dma {
    EngWalk walk;
    EngTensor dst, src;
    EngAlu *alu; // NULL: dst is overwritten
    EngAlu *bf16; // the same from bf16 to bf16; NULL: through fp32
    bool bits;   // same type
} Dma;

EngBody eff_ew_body, eff_select_body, eff_bits_body; // their bodies: elementwise, select_reduce, transfers of bits

#endif
