// SPDX-License-Identifier: Apache-2.0
// probe.h — what a core can do right now: fused multiply-adds in the widest vectors there are.
//
// Machines share cores and change clocks, so only ratios mean anything: the probe runs right beside every
// sample. One thread is timed by its own CPU time, so that other programs on the machine do not count;
// several by the clock on the wall.
#ifndef OTRN_BENCH_PROBE_H
#define OTRN_BENCH_PROBE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/host.h"

#define SAMPLES_MAX 1000

static clockid_t bench_clock = CLOCK_THREAD_CPUTIME_ID;

static double now_s(void) {
    struct timespec t;
    clock_gettime(bench_clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// --- the probe -----------------------------------------------------------------------------------

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
PROBE(probe_avx512, __attribute__((target("avx512f"))), __m512, _mm512_set1_ps, _mm512_fmadd_ps)
PROBE(probe_avx2, __attribute__((target("avx2,fma"))), __m256, _mm256_set1_ps, _mm256_fmadd_ps)
#endif

// Flop per second of one core now in vectors of that level, 0 when there is no vector probe for it.
static double probe_rate(HostLevel level) {
    double lanes = 0, start = now_s();
#if defined(__x86_64__)
    if (level >= HOST_AVX512)
        probe_avx512(), lanes = 16;
    else if (level == HOST_AVX2)
        probe_avx2(), lanes = 8;
#endif
    return 2.0 * PROBE_CHAINS * PROBE_STEPS * lanes / (now_s() - start);
}

// --- statistics ----------------------------------------------------------------------------------

typedef struct Samples {
    double rate[SAMPLES_MAX], probe[SAMPLES_MAX]; // flop per second, each with the probe beside it
    int n;
} Samples;

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void samples_add(Samples *s, double flop, double seconds, double probe) {
    s->rate[s->n] = flop / seconds;
    s->probe[s->n++] = probe;
}

static double quantile(double *x, int n, int tenth) {
    qsort(x, (size_t)n, sizeof(double), by_value);
    return x[n * tenth / 10];
}

static double samples_best(Samples *s) { // the rate a tenth of the samples reach
    return quantile(s->rate, s->n, 9);
}

static double samples_share(Samples *s) { // of the probe, best decile by best decile
    double probe = quantile(s->probe, s->n, 9);
    return probe > 0 ? samples_best(s) / probe : 0;
}

static void samples_print(Samples *s, const char *name) {
    double best = samples_best(s);
    printf("%-28s %6.1f  median %6.1f GFLOP/s, %5.3f of the probe\n", name, best * 1e-9,
           quantile(s->rate, s->n, 5) * 1e-9, samples_share(s));
}

static void bar_print(const char *name, double got, double wanted) {
    printf("bar: %-56s %5.3f, wanted %.2f: %s\n", name, got, wanted, got >= wanted ? "met" : "MISSED");
}

#endif
