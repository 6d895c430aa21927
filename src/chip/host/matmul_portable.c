// SPDX-License-Identifier: Apache-2.0
// matmul_portable.c — the matrix product in plain C: the definition every host kernel must meet.
//
// fp32 operands follow IEEE 754. Narrower operands flush: each subnormal input, chain step and sum
// counts as zero of its sign. "Subnormal" is judged as x86 judges it, after rounding to 24 bits as
// if the exponent had no lower limit, so a value just under 2^-126 that rounds up to it stays. The
// panels of this level are the plain widened matrix, k rows of ISA_PE_COLS.
#include <float.h>
#include <math.h>
#include <string.h>

#include "chip/host/matmul.h"

#define COLS 64 // columns widened at a time

float mm_widen(int stype, const uint8_t *p) {
    uint16_t h;
    uint32_t u;
    float f;
    switch (stype) {
    case DT_F32:
        memcpy(&f, p, 4);
        return f;
    case DT_TF32:
        memcpy(&u, p, 4);
        u = (u & 0x7fffffff) > 0x7f800000 ? MM_NAN : u & ~0x1fffu;
        memcpy(&f, &u, 4);
        return f;
    case DT_BF16:
        memcpy(&h, p, 2);
        return bf16_to_f32(h);
    case DT_F16:
        memcpy(&h, p, 2);
        return f16_to_f32(h);
    default:
        return (float)dtype_to_f64(stype, p);
    }
}

static float flush(float x) {
    return fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
}

// One step of a flushing chain; a, b and c are flushed already.
static float fma_flush(float a, float b, float c) {
    float r = fmaf(a, b, c);
    if (fabsf(r) != FLT_MIN)
        return flush(r);
    // Rounded to the smallest normal: from below the last 24-bit value under it, or truly there?
    // The product of two floats is exact in double; the sum's rounding error follows exactly.
    double p = (double)a * b, s = p + c, bound = (double)FLT_MIN - 0x1p-151;
    double c_part = s - p, error = (p - (s - c_part)) + (c - c_part);
    double above = r < 0 ? -s - bound : s - bound;
    if (above == 0)
        above = r < 0 ? -error : error;
    return above < 0 ? copysignf(0, r) : r;
}

static float add_flush(float a, float b) {
    return flush(flush(a) + flush(b));
}

static float nan_clean(float x) {
    uint32_t u = MM_NAN;
    if (x != x)
        memcpy(&x, &u, 4);
    return x;
}

// dst[j] (+)= sum over k of s[k] * v[k][j]; s is a column of the stationary matrix.
static void row_wide(float *dst, const float *s, float (*v)[COLS], uint32_t k, uint32_t n,
                     bool accumulate) {
    float chain[COLS] = {0};
    for (uint32_t i = 0; i < k; i++)
        for (uint32_t j = 0; j < n; j++)
            chain[j] = fmaf(s[i * ISA_PE_COLS], v[i][j], chain[j]);
    for (uint32_t j = 0; j < n; j++)
        dst[j] = nan_clean(accumulate ? dst[j] + chain[j] : chain[j]);
}

static void row_narrow(float *dst, const float *s, float (*v)[COLS], uint32_t k, uint32_t n,
                       bool accumulate) {
    for (uint32_t j = 0; j < n; j++) {
        float sum = accumulate ? dst[j] : 0;
        for (uint32_t g = 0; g < k; g += MM_GROUP) {
            float chain[2] = {0, 0}; // even rows, odd rows
            for (uint32_t i = g; i < k && i < g + MM_GROUP; i++)
                chain[i & 1] = fma_flush(flush(s[i * ISA_PE_COLS]), flush(v[i][j]), chain[i & 1]);
            sum = add_flush(sum, add_flush(chain[0], chain[1]));
        }
        dst[j] = nan_clean(sum);
    }
}

void mm_load_portable(MmStationary *st, const uint8_t *src, size_t pitch, int32_t stride) {
    ptrdiff_t step = (ptrdiff_t)stride * (ptrdiff_t)dtype_bytes(st->stype);
    for (uint32_t i = 0; i < st->k; i++)
        for (uint32_t m = 0; m < st->m; m++)
            st->panels[i * ISA_PE_COLS + m] = mm_widen(st->stype, src + i * pitch + m * step);
}

// Kept out of mm_multiply, which sets the float mode around it.
__attribute__((noinline)) void mm_multiply_portable(const MmCall *c, uint32_t j0, uint32_t j1) {
    const MmStationary *st = c->st;
    ptrdiff_t step = (ptrdiff_t)c->src_stride * (ptrdiff_t)dtype_bytes(c->stype);
    bool wide = mm_is_wide(c);
    for (uint32_t j = j0; j < j1; j += COLS) {
        uint32_t n = j1 - j < COLS ? j1 - j : COLS;
        float v[ISA_PE_ROWS][COLS], row[COLS];
        for (uint32_t i = 0; i < st->k; i++)
            for (uint32_t x = 0; x < n; x++)
                v[i][x] = mm_widen(c->stype, (const uint8_t *)c->src + i * c->src_pitch +
                                                 (ptrdiff_t)(j + x) * step);
        for (uint32_t m = 0; m < st->m; m++) {
            float *dst = (float *)((uint8_t *)c->dst + m * c->dst_pitch);
            for (uint32_t x = 0; x < n; x++)
                row[x] = dst[(ptrdiff_t)(j + x) * c->dst_stride];
            (wide ? row_wide : row_narrow)(row, st->panels + m, v, st->k, n, c->accumulate);
            for (uint32_t x = 0; x < n; x++)
                dst[(ptrdiff_t)(j + x) * c->dst_stride] = row[x];
        }
    }
}
