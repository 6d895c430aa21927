// SPDX-License-Identifier: Apache-2.0
// engine_level.h — the loops of one host level under the vector, scalar and gpsimd engines (engine_body.h).
#ifndef OTRN_CHIP_ENGINE_LEVEL_H
#define OTRN_CHIP_ENGINE_LEVEL_H

#include "base/draw.h"
#include "chip/gpsimd/gp.h"

#define ENG_PARTIALS 32

typedef enum EngDomain {
    ENG_F32,  // numbers, as fp32
    ENG_BITS, // as uint32, zeros from the left; stored by cutting
    ENG_INT,  // as int64; a result wraps at 32 bits and saturates to narrower types
    ENG_DOMAINS
} EngDomain;

typedef void EngAlu(void *z, const void *x, const void *y, size_t n); // z may be x or y
typedef void EngAlu2(float *z, const float *x, const float *a, const float *b, size_t n);
typedef void EngAluOne(float *z, const float *x, float y, size_t n);
typedef void EngPairOnes(float *z, const float *x, float a, float b, size_t n);
typedef void EngPairOne(float *z, const float *x, float a, const float *y, size_t n);
typedef void EngFn16(uint16_t *y, const uint16_t *x, size_t n);
typedef void EngOne16(uint16_t *z, const uint16_t *x, float y, size_t n);
// y = exp(x * a + b), *acc += the run of them
typedef void EngExp(void *y, const void *x, float a, float b, float *acc, size_t n);
typedef void EngFn(float *y, const float *x, size_t n, float parameter); // y may be x
typedef void EngRun(void *acc, const void *x, size_t n); // *acc = *acc op (x[0] op x[1] …)

// A chain (chain.h): a program for an accumulator of ENG_CHAIN_COLS columns. Operands in memory are `at` + column * scale bytes,
// ENG_CHAIN_BF16 is added to those that are bf16.
#define ENG_CHAIN_COLS 128
enum {
    ENG_CHAIN_LOAD, ENG_CHAIN_ADD, ENG_CHAIN_SUB, ENG_CHAIN_BACK, ENG_CHAIN_MUL, // BACK: operand - accumulator
    ENG_CHAIN_SCALE_ADD, ENG_CHAIN_ADD_SCALED, // accumulator * number + operand, operand * number + accumulator
    ENG_CHAIN_STORE,
    ENG_CHAIN_BF16,
    ENG_CHAIN_ADD_ONE = 2 * ENG_CHAIN_BF16, ENG_CHAIN_SUB_ONE, ENG_CHAIN_BACK_ONE, ENG_CHAIN_MUL_ONE, // with the number
    ENG_CHAIN_SQUARE, ENG_CHAIN_SQRT, ENG_CHAIN_RECIP, ENG_CHAIN_EXP,
    ENG_CHAIN_QUIET, ENG_CHAIN_ROUND, // NaNs to the one; to bf16 as a conversion does
    ENG_CHAIN_WHERE, ENG_CHAIN_WHERE_NOT, // the number where the mask of bytes is 0, or is not
    ENG_CHAIN_CALL, ENG_CHAIN_REDUCE,
    ENG_CHAIN_FETCH // the next row, into the cache
};
typedef struct EngChainOp {
    uint8_t op, at, scale, scalar; // scalar: also number of the reduction, and the function's parameter
    union {
        EngFn *fn;     // of CALL
        int64_t pitch; // of FETCH: bytes to the next row
    };
} EngChainOp;
typedef struct EngChainRed {
    _Alignas(64) float part[2][16];
    float *acc;
    uint8_t op; // ALU_ADD or ALU_MAX
    uint32_t nan;
} EngChainRed;
typedef struct EngChain { // a row
    const EngChainOp *op;
    uint32_t nops, nred;
    uint8_t *const *at;
    const float *scalar;
    EngChainRed *red;
} EngChain;

typedef struct EngLevel {
    EngAlu *alu[ENG_DOMAINS][ALU_COUNT]; // NULL: the operation is not in this domain
    EngAlu *bf16[ALU_COUNT];             // the same bits as widen, alu, narrow; NULL: go that way
    EngAlu2 *pair[ALU_COUNT][ALU_COUNT]; // (x op0 a) op1 b in one pass; NULL: two passes
    // The same bits with one value for a row: x op y, (x op0 a) op1 b, (x op0 a) op1 y[i]. NULL: go the other way
    EngAluOne *one[ALU_COUNT];
    EngAluOne *back;                     // y - x
    EngPairOnes *ones[ALU_COUNT][ALU_COUNT];
    EngPairOne *pair_one[ALU_COUNT][ALU_COUNT];
    EngFn16 *bf16_fn[ACT_COUNT];         // of bf16, the same bits as widen, fn, narrow; NULL: go that way
    EngOne16 *one_bf16[ALU_COUNT];       // of bf16, the same bits as widen, one, narrow; NULL: go that way
    EngExp *exp_f32, *exp_bf16;          // the same bits as in several passes; NULL: go that way
    EngRun *run[ENG_DOMAINS][ALU_COUNT]; // NULL: it does not reduce in any order
    EngRun *run_bf16[ALU_COUNT];         // of bf16, into fp32: the same bits as widen, run; NULL: go that way
    EngFn *fn[ACT_COUNT];
    void (*chain)(const EngChain *c, size_t n); // the n columns of a block; NULL: there are no chains
    EngFn *short_fn[ACT_COUNT]; // in chains, in the place of bf16_fn: from fp32 that is bf16 to fp32 that is rounded to it
    void (*round)(float *y, const float *x, size_t n, float lo, float hi); // to integers in [lo, hi]
    void (*clamp)(int64_t *y, const int64_t *x, size_t n, int64_t lo, int64_t hi); // of the low 32 bits
    // fp32 that a format keeps, by chance up or down: `drop` bits go, below `normal` multiples of `least` stay
    // (least 0: the format has fp32's exponents). Key and counter of base/round.h.
    void (*stochastic)(float *y, const float *x, size_t n, uint32_t key, uint32_t counter, int drop,
                       float normal, float least);
    // out[j] = (sum over even rows) + (sum over odd rows) of w[k] * v[k][j], k < 32, ascending.
    void (*mx)(float *out, const float *w, const float *v, size_t pitch, size_t n);
    void (*select)(uint32_t *z, const uint32_t *mask, const uint32_t *x, const uint32_t *y,
                   size_t n); // mask != 0 ? x : y
    void (*draw)(uint32_t *z, size_t n, DrawKeys d); // element numbers become their bits (base/draw.h), and these flags
    void (*draw_flags)(uint8_t *y, const uint32_t *bits, size_t n, uint32_t bound, bool below);
} EngLevel;

#endif
