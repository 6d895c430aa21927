// SPDX-License-Identifier: Apache-2.0
// matmul.h — what the tensor engine's driver (matmul.c) asks of an instruction set.
//
// A tile is `rows` rows by up to `vecs` vectors of columns of the result, held in registers while k
// runs:
//
//              v: widened panel of the moving operand, k rows of nv * lanes columns, in L1
//              +---------------+
//            k |               |
//   k          +---------------+
//  +---+   +---+---------------+
//  | s |   rows|       c       |  PSUM
//  +---+       +---------------+
//   s: one block of the stationary operand, k rows of `rows` columns
//
// Two orders of summation exist (design: "Numbers are the chip's"):
//   wide     one chain of fused multiply-adds from zero over ascending k; c = c + chain, or c =
//   chain narrow   groups of 32 rows; even-row chain and odd-row chain from zero; c = c + (even +
//   odd), c
//            starting as zero when not accumulating; runs with subnormals flushed (HOST_FP_FLUSH)
#ifndef OTRN_CHIP_MATMUL_H
#define OTRN_CHIP_MATMUL_H

#include "chip/chip.h"

#define MM_GROUP 32    // rows per group of the narrow order
#define MM_ROWS_MAX 8  // largest `rows`
#define MM_VECS_MAX 3  // largest `vecs`
#define MM_COLS_MAX 32 // largest vecs * lanes
#define MM_NAN 0x7fc00000u

// c rows are c_pitch bytes apart; c needs no alignment. v rows are v_step floats apart and aligned to 64
// bytes each (to a vector, in a panel of fewer), s to 16.
typedef void MmTile(const float *s, const float *v, size_t v_step, float *c, size_t c_pitch,
                    uint32_t k, bool accumulate);

typedef struct MmKernels {
    uint32_t rows, lanes, vecs;
    bool fetch_near; // the next panel goes to L1: right when two panels leave room there
    MmTile *wide[MM_VECS_MAX], *narrow[MM_VECS_MAX]; // [vectors of columns - 1]
    // out[i][j] = fp32 of src[i][j], neighbours adjacent; cols is a multiple of lanes; out rows are
    // out_cols floats apart and aligned to a vector.
    void (*widen)(float *out, size_t out_cols, const uint8_t *src, size_t pitch, int stype,
                  uint32_t rows, uint32_t cols);
} MmKernels;

extern const MmKernels mm_avx2, mm_avx512;

// The definition: plain C, no tiles (matmul_portable.c).
void mm_load_portable(MmStationary *st, const uint8_t *src, size_t pitch, int32_t stride);
void mm_multiply_portable(const MmCall *c, uint32_t j0, uint32_t j1);
float mm_widen(int stype, const uint8_t *p); // exact; tf32 drops the low 13 bits of its word

static inline bool mm_is_wide(const MmCall *c) {
    return c->stype == DT_F32 || c->st->stype == DT_F32;
}

#endif
