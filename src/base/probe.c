// SPDX-License-Identifier: Apache-2.0
// probe.c — fused multiply-adds in the widest vectors there are, and nothing else.
#include "base/probe.h"

#define PROBE_CHAINS 12
#define PROBE_STEPS 36000 // two per iteration, so that the loop itself costs nothing

#define PROBE_STEP(fma)                                                                            \
    c0 = fma(c0, a, b), c1 = fma(c1, a, b), c2 = fma(c2, a, b), c3 = fma(c3, a, b),                \
    c4 = fma(c4, a, b), c5 = fma(c5, a, b), c6 = fma(c6, a, b), c7 = fma(c7, a, b),                \
    c8 = fma(c8, a, b), c9 = fma(c9, a, b), d0 = fma(d0, a, b), d1 = fma(d1, a, b)

// No chain starts at its fixed point 1, or a compiler may drop it; the empty asm makes the results
// wanted.
#define PROBE(name, attr, V, one, fma)                                                             \
    static attr __attribute__((noinline)) void name(void) {                                        \
        V a = one(0.999f), b = one(0.001f);                                                        \
        V c0 = one(2), c1 = one(3), c2 = one(4), c3 = one(5), c4 = one(6), c5 = one(7),            \
          c6 = one(8), c7 = one(9), c8 = one(10), c9 = one(11), d0 = one(12), d1 = one(13);        \
        for (int i = 0; i < PROBE_STEPS / 2; i++) {                                                \
            PROBE_STEP(fma);                                                                       \
            PROBE_STEP(fma);                                                                       \
        }                                                                                          \
        __asm__ volatile("" ::"v"(c0), "v"(c1), "v"(c2), "v"(c3), "v"(c4), "v"(c5));               \
        __asm__ volatile("" ::"v"(c6), "v"(c7), "v"(c8), "v"(c9), "v"(d0), "v"(d1));               \
    }

#if defined(__x86_64__)
#include <immintrin.h>
PROBE(probe_avx2, __attribute__((target("avx2,fma"))), __m256, _mm256_set1_ps, _mm256_fmadd_ps)
#if !defined(OTRN_MODEL_LEVELS) // a model's rate is no rate
PROBE(probe_avx512, __attribute__((target("avx512f"))), __m512, _mm512_set1_ps, _mm512_fmadd_ps)
#else
#define probe_avx512 probe_avx2
#endif
#endif

double probe_run(HostLevel level) {
    double lanes = 0;
#if defined(__x86_64__)
    if (level >= HOST_AVX512)
        probe_avx512(), lanes = 16;
    else if (level == HOST_AVX2)
        probe_avx2(), lanes = 8;
#endif
    (void)level;
    return 2.0 * PROBE_CHAINS * PROBE_STEPS * lanes;
}
