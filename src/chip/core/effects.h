// SPDX-License-Identifier: Apache-2.0
// effects.h — the effect functions, one per instruction, and what their files share.
#ifndef OTRN_CHIP_EFFECTS_H
#define OTRN_CHIP_EFFECTS_H

#include "chip/core/engine.h"

// One row per instruction with an effect: enum of isa.def, function.
#define EFFECT_ROWS(X)                                                                             \
    X(COPY, copy) X(MEMSET, memset) X(TRANSPOSE, transpose) X(IOTA, iota)                          \
    X(TENSOR_TENSOR, tensor_tensor) X(TENSOR_SCALAR, tensor_scalar) X(SCALAR_TT, scalar_tt)        \
    X(RECIPROCAL, reciprocal) X(ACTIVATE, activation) X(ACTIVATE2, activate2)                      \
    X(EXPONENTIAL, exponential) X(SCALAR_REDUCE, scalar_reduce)                                    \
    X(REDUCE, reduce) X(PART_REDUCE, part_reduce)                                                  \
    X(COPY_PRED, copy_pred) X(AFFINE_SELECT, affine_select) X(RANGE_SELECT, range_select)          \
    X(SELECT_REDUCE, select_reduce) X(SCAN, scan) X(SCALAR_CUM, scalar_cum)                        \
    X(BN_STATS, bn_stats) X(BN_AGGR, bn_aggr) X(MAX8, max8) X(FIND8, find8) X(MATCH8, match8)      \
    X(RNG, rng) X(RAND2, rand2) X(DROPOUT, dropout) X(RNG_SEED, rng_seed) X(RNG_SET, rng_set)      \
    X(RNG_GET, rng_get) X(RNG_AT, rng_at) X(DROPOUT_AT, dropout_at) X(SHUFFLE, shuffle)                    \
    X(LOCAL_GATHER, local_gather) X(N_GATHER, n_gather)                                            \
    X(SEQ_BOUNDS, seq_bounds) X(NONZERO, nonzero) X(TOPK, topk) X(DMA, dma)                        \
    X(DMA_INDIRECT, dma_indirect) X(SENDRECV, sendrecv) X(CORE_BARRIER, core_barrier)              \
    X(LDWEIGHTS, ldweights) X(MATMUL, matmul) X(LDWEIGHTS_MX, ldweights_mx)                        \
    X(MATMUL_MX, matmul_mx) X(QUANT_MX, quant_mx)
#define X(E, name) EffFn eff_##name;
EFFECT_ROWS(X)
#undef X


// Transfers by index that follow each other and differ in places only (indirect.c), over the pool. suits: rows are single
// stretches and lie apart.
bool eff_indirect_suits(const EffCall *c);
otrn_status eff_indirect_many(const EffCall *calls, uint32_t n);

// A register per partition, steered by rcmd; res, when given, is written from it.
typedef struct EffReg {
    float *acc; // of the instruction's first partition
    uint8_t rcmd;
    bool negate;
    float identity;
    EngTensor res;
} EffReg;
EffReg eff_reg(const EffCall *c, float *acc, int rop);
bool eff_reg_reduces(const EffReg *r);
// For the rows of a block: before the first of a row, with what load_reduce begins with, and behind the last.
void eff_reg_begin(const EffReg *r, const EngWalk *w, const EngScalar *load, const EngBlock *b);
void eff_reg_gather(const EffReg *r, EngRun *run, const EngBlock *b, const void *x);
void eff_reg_end(const EffReg *r, const EngWalk *w, const EngBlock *b);

// imm + p * t0 + i1 * t1 + … for each element of a block, as int32 widened.
void eff_affine(const IsaInst *in, const EngBlock *b, int64_t *out);

#endif
