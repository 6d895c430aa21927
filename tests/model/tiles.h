// SPDX-License-Identifier: Apache-2.0
// tiles.h — a model of AMX's tile instructions in plain C, as Intel's manual has them.
//
// matmul_test runs the AMX kernel over it on hosts with AVX-512; `make levels` (avx512.h) on any x86 host with AVX2.
#ifndef OTRN_TESTS_MODEL_TILES_H
#define OTRN_TESTS_MODEL_TILES_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct ModelTile {
    uint32_t word[16][16];
} ModelTile;
static _Thread_local __attribute__((unused)) ModelTile model[8]; // palette 1: eight tiles of 16 rows by 64 bytes

static __attribute__((unused)) void model_load(int t, const void *at, size_t pitch) {
    for (size_t r = 0; r < 16; r++)
        memcpy(model[t].word[r], (const uint8_t *)at + r * pitch, 64);
}

static __attribute__((unused)) void model_store(int t, void *at, size_t pitch) {
    for (size_t r = 0; r < 16; r++)
        memcpy((uint8_t *)at + r * pitch, model[t].word[r], 64);
}

static inline float model_float(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}

__attribute__((target("fma"))) static float model_fma(float a, float b, float c) {
    return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
}

// Apart, so that no arithmetic moves across the change of mode.
static __attribute__((noinline, unused)) void model_multiply_flushing(int c, int a, int b) {
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 16; n++) {
            float low = 0, high = 0;
            for (int p = 0; p < 16; p++) {
                uint32_t x = model[a].word[m][p], y = model[b].word[p][n];
                low = model_fma(model_float(x << 16), model_float(y << 16), low);
                high = model_fma(model_float(x & 0xffff0000), model_float(y & 0xffff0000), high);
            }
            float sum = model_float(model[c].word[m][n]) + (low + high);
            memcpy(&model[c].word[m][n], &sum, 4);
        }
}

// TDPBF16PS: nearest even with subnormals flushed whatever MXCSR says; per result a chain over the low halves and one
// over the high halves of 16 words, then c + (low + high).
static __attribute__((unused)) void model_multiply(int c, int a, int b) {
    unsigned old = _mm_getcsr();
    _mm_setcsr(0x1f80u | 0x8040u);
    model_multiply_flushing(c, a, b);
    _mm_setcsr(old);
}

#endif
