// SPDX-License-Identifier: Apache-2.0
// matmul_bench.c — the tensor engine against this host's own arithmetic, as ratios in one run.
//
// A probe of independent chains of fused multiply-adds, in the widest vectors there are, says what
// a core can do at that moment; it runs right beside every sample. Machines share cores and change
// clocks, so only ratios mean anything. One thread is timed by its own CPU time, so that other
// programs on the machine do not count; several by the clock on the wall. Printed per line: median
// of the ratios, best decile, median GFLOP/s.
//   tile     one 128 x 128 x 512 product, operands in cache, per host level and type; "rotating":
//   the
//            moving operand walks through all of SBUF
//   gemm     1024 x 1024 x 1024 as a small instruction stream: DMA in from row-major HBM,
//            load stationary, matmul, evict, DMA out; with the share of time in each
// Usage: matmul_bench [samples [threads]]
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "chip/chip.h"
#include "chip/dma.h"

#define SBUF_PITCH (CHIP_SBUF_BYTES + 64)
#define PSUM_PITCH (CHIP_PSUM_BYTES + 64)
#define HUGE_PAGE (2u << 20)
#define DIM 1024
#define SAMPLES_MAX 1000

static clockid_t bench_clock = CLOCK_THREAD_CPUTIME_ID;

static double now_s(void) {
    struct timespec t;
    clock_gettime(bench_clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint8_t *memory_make(size_t bytes) {
    uint8_t *p =
        mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        exit(1);
    p += -(uintptr_t)p & (HUGE_PAGE - 1);
    madvise(p, bytes, MADV_HUGEPAGE);
    memset(p, 0, bytes);
    return p;
}

// --- the probe -----------------------------------------------------------------------------------

#define PROBE_CHAINS 14
#define PROBE_STEPS 30000

// The empty asm keeps each chain in a register and in the loop.
#define PROBE(name, attr, V, reg, one, fma)                                                        \
    static attr __attribute__((noinline)) void name(void) {                                        \
        V c[PROBE_CHAINS], a = one(0.999f), b = one(0.001f);                                       \
        for (int i = 0; i < PROBE_CHAINS; i++)                                                     \
            c[i] = one((float)i);                                                                  \
        V c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3], c4 = c[4], c5 = c[5], c6 = c[6], c7 = c[7],  \
          c8 = c[8], c9 = c[9], d0 = c[10], d1 = c[11], d2 = c[12], d3 = c[13];                    \
        for (int i = 0; i < PROBE_STEPS; i++) {                                                    \
            c0 = fma(c0, a, b), c1 = fma(c1, a, b), c2 = fma(c2, a, b), c3 = fma(c3, a, b);        \
            c4 = fma(c4, a, b), c5 = fma(c5, a, b), c6 = fma(c6, a, b), c7 = fma(c7, a, b);        \
            c8 = fma(c8, a, b), c9 = fma(c9, a, b), d0 = fma(d0, a, b), d1 = fma(d1, a, b);        \
            d2 = fma(d2, a, b), d3 = fma(d3, a, b);                                                \
        }                                                                                          \
        __asm__ volatile("" ::reg(c0), reg(c1), reg(c2), reg(c3), reg(c4), reg(c5), reg(c6));      \
        __asm__ volatile("" ::reg(c7), reg(c8), reg(c9), reg(d0), reg(d1), reg(d2), reg(d3));      \
    }

#if defined(__x86_64__)
#include <immintrin.h>
PROBE(probe_avx512, __attribute__((target("avx512f"))), __m512, "v", _mm512_set1_ps,
      _mm512_fmadd_ps)
PROBE(probe_avx2, __attribute__((target("avx2,fma"))), __m256, "x", _mm256_set1_ps, _mm256_fmadd_ps)
#endif

// Flop per second of one core now, 0 when there is no vector probe for this host.
static double probe_rate(void) {
    double lanes = 0, start = now_s();
#if defined(__x86_64__)
    if (host_best() == HOST_AVX512)
        probe_avx512(), lanes = 16;
    else if (host_best() == HOST_AVX2)
        probe_avx2(), lanes = 8;
#endif
    return 2.0 * PROBE_CHAINS * PROBE_STEPS * lanes / (now_s() - start);
}

// --- statistics ----------------------------------------------------------------------------------

typedef struct Samples {
    double ratio[SAMPLES_MAX], rate[SAMPLES_MAX];
    int n;
} Samples;

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void samples_add(Samples *s, double flop, double seconds, double probe) {
    s->rate[s->n] = flop / seconds;
    s->ratio[s->n++] = probe > 0 ? flop / seconds / probe : 0;
}

static void samples_print(Samples *s, const char *name) {
    qsort(s->ratio, (size_t)s->n, sizeof(double), by_value);
    qsort(s->rate, (size_t)s->n, sizeof(double), by_value);
    printf("%-28s %5.3f  best %5.3f  %6.1f GFLOP/s\n", name, s->ratio[s->n / 2],
           s->ratio[s->n * 9 / 10], s->rate[s->n / 2] * 1e-9);
}

// --- one core's memories -------------------------------------------------------------------------

typedef struct Core {
    uint8_t *sbuf, *psum, *hbm_a, *hbm_b, *hbm_c;
    float *panels;
    Pool *pool;
} Core;

static void fill(uint8_t *p, size_t elems, int dtype) {
    uint32_t x = 12345;
    for (size_t i = 0; i < elems; i++) {
        x = x * 1664525 + 1013904223;
        float v = (float)(int32_t)x * 0x1p-31f;
        uint16_t h = bf16_from_f32(v);
        if (dtype == DT_F32)
            memcpy(p + i * 4, &v, 4);
        else
            memcpy(p + i * 2, &h, 2);
    }
}

// --- tiles ---------------------------------------------------------------------------------------

typedef struct TileBench {
    char name[48];
    HostLevel level;
    int dtype;
    bool rotate;
    Samples s;
} TileBench;

static double tile_once(Core *c, const TileBench *b, int round) {
    enum { REPEAT = 4 };
    MmStationary st = {.panels = c->panels};
    mm_load(b->level, &st, c->sbuf, SBUF_PITCH, b->dtype, 128, 128, 1);
    size_t tile_bytes = 512 * dtype_bytes(b->dtype), tiles = CHIP_SBUF_BYTES / tile_bytes;
    double start = now_s();
    for (int r = 0; r < REPEAT; r++) {
        size_t at = b->rotate ? (size_t)(round * REPEAT + r) % tiles : 1;
        size_t next = b->rotate ? (at + 1) % tiles : 1;
        MmCall call = {.st = &st,
                       .dst = (float *)c->psum,
                       .dst_pitch = PSUM_PITCH,
                       .dst_stride = 1,
                       .src = c->sbuf + at * tile_bytes,
                       .src_pitch = SBUF_PITCH,
                       .src_stride = 1,
                       .stype = b->dtype,
                       .accumulate = r > 0,
                       .next_src = c->sbuf + next * tile_bytes};
        mm_run(c->pool, &call, 512);
    }
    return (now_s() - start) / REPEAT;
}

static int tiles_list(TileBench *list) {
    int n = 0;
    for (int level = HOST_AVX2; level <= (int)host_best(); level++)
        for (int kind = 0; kind < 4; kind++) {
            TileBench *b = &list[n++];
            *b = (TileBench){.level = (HostLevel)level,
                             .dtype = kind & 1 ? DT_BF16 : DT_F32,
                             .rotate = kind & 2};
            snprintf(b->name, sizeof b->name, "tile %s %s%s", host_name(b->level),
                     dtype_row(b->dtype)->name, b->rotate ? " rotating" : "");
        }
    return n;
}

static void tiles_bench(Core *c, int samples) {
    static TileBench list[16];
    static Samples probes;
    int n = tiles_list(list);
    for (int i = 0; i < samples; i++)
        for (int b = 0; b < n; b++) {
            double probe = probe_rate();
            if (b == 0)
                samples_add(&probes, probe, 1, probe);
            samples_add(&list[b].s, 2.0 * 128 * 128 * 512, tile_once(c, &list[b], i), probe);
        }
    samples_print(&probes, "probe");
    for (int b = 0; b < n; b++)
        samples_print(&list[b].s, list[b].name);
}

// --- a whole product as an instruction stream ----------------------------------------------------

enum { T_DMA_IN, T_LOAD, T_MATMUL, T_EVICT, T_DMA_OUT, T_COUNT };
static const char *const time_names[T_COUNT] = {"dma in", "ldweights", "matmul", "evict",
                                                "dma out"};

// SBUF, per partition: A as k-tiles of DIM columns, B likewise, then the result.
#define TILES (DIM / 128)
#define OFF_A 0u
#define OFF_B(e) (TILES * DIM * (e))
#define OFF_C(e) (2 * TILES * DIM * (e))

static void dma_in(Core *c, HostLevel level, const uint8_t *hbm, uint32_t off, uint32_t tile,
                   size_t e) {
    dma_copy(c->pool, level, c->sbuf + off + tile * DIM * e,
             (int64_t[4]){0, 0, SBUF_PITCH, (int64_t)e}, hbm + (size_t)tile * 128 * DIM * e,
             (int64_t[4]){0, 0, (int64_t)(DIM * e), (int64_t)e}, (uint32_t[4]){0, 0, 128, DIM}, e);
}

// C[m][n] = sum over k of A[k][m] * B[k][n]; all row-major in HBM.
static double gemm_once(Core *c, HostLevel level, int dtype, double times[T_COUNT]) {
    size_t e = dtype_bytes(dtype);
    double start = now_s(), last = start;
#define LAP(t) (times[t] -= last, last = now_s(), times[t] += last)
    for (uint32_t k = 0; k < TILES; k++) {
        dma_in(c, level, c->hbm_a, OFF_A, k, e);
        dma_in(c, level, c->hbm_b, (uint32_t)OFF_B(e), k, e);
    }
    LAP(T_DMA_IN);
    MmStationary st = {.panels = c->panels};
    for (uint32_t m = 0; m < TILES; m++) {
        for (uint32_t k = 0; k < TILES; k++) {
            mm_load(level, &st, c->sbuf + (k * DIM + m * 128) * e, SBUF_PITCH, dtype, 128, 128, 1);
            LAP(T_LOAD);
            const uint8_t *b = c->sbuf + OFF_B(e) + k * DIM * e;
            for (uint32_t n = 0; n < 2; n++) { // one PSUM bank each
                MmCall call = {.st = &st,
                               .dst = (float *)(c->psum + n * CHIP_PSUM_BANK_BYTES),
                               .dst_pitch = PSUM_PITCH,
                               .dst_stride = 1,
                               .src = b + n * 512 * e,
                               .src_pitch = SBUF_PITCH,
                               .src_stride = 1,
                               .stype = dtype,
                               .accumulate = k > 0,
                               .next_src = b + (n + 1) * 512 * e};
                mm_run(c->pool, &call, 512);
            }
            LAP(T_MATMUL);
        }
        uint8_t *out = c->sbuf + OFF_C(e) + (m & 1) * DIM * e;
        for (uint32_t n = 0; n < 2; n++)
            tensor_copy(c->pool, level, out + n * 512 * e, SBUF_PITCH, dtype, 1,
                        c->psum + n * CHIP_PSUM_BANK_BYTES, PSUM_PITCH, DT_F32, 1, 128, 512);
        LAP(T_EVICT);
        dma_copy(c->pool, level, c->hbm_c + (size_t)m * 128 * DIM * e,
                 (int64_t[4]){0, 0, (int64_t)(DIM * e), (int64_t)e}, out,
                 (int64_t[4]){0, 0, SBUF_PITCH, (int64_t)e}, (uint32_t[4]){0, 0, 128, DIM}, e);
        LAP(T_DMA_OUT);
    }
    return now_s() - start;
}

static double gemm_bench(Core *c, HostLevel level, int dtype, int samples) {
    static Samples s;
    s.n = 0;
    double times[T_COUNT] = {0}, total = 0;
    fill(c->hbm_a, DIM * DIM, dtype);
    fill(c->hbm_b, DIM * DIM, dtype);
    for (int i = 0; i < samples; i++) {
        double probe = probe_rate(), seconds = gemm_once(c, level, dtype, times);
        samples_add(&s, 2.0 * DIM * DIM * DIM, seconds, (probe + probe_rate()) / 2);
    }
    char name[48];
    snprintf(name, sizeof name, "gemm %s %s", host_name(level), dtype_row(dtype)->name);
    samples_print(&s, name);
    for (int t = 0; t < T_COUNT; t++)
        total += times[t];
    for (int t = 0; t < T_COUNT; t++)
        printf("  %s %.1f%%%s", time_names[t], times[t] / total * 100,
               t + 1 == T_COUNT ? "\n" : "");
    return s.ratio[s.n / 2];
}

int main(int argc, char **argv) {
    int samples = argc > 1 ? atoi(argv[1]) : 51, threads = argc > 2 ? atoi(argv[2]) : 1;
    if (samples < 1 || samples > SAMPLES_MAX || host_best() == HOST_PORTABLE) {
        fprintf(stderr, "usage: matmul_bench [samples [threads]] on a host with AVX2\n");
        return 2;
    }
    Core c = {.sbuf = memory_make((size_t)CHIP_PARTITIONS * SBUF_PITCH),
              .psum = memory_make((size_t)CHIP_PARTITIONS * PSUM_PITCH),
              .hbm_a = memory_make(DIM * DIM * 4),
              .hbm_b = memory_make(DIM * DIM * 4),
              .hbm_c = memory_make(DIM * DIM * 4),
              .panels = (float *)memory_make(MM_PANEL_BYTES),
              .pool = pool_make(threads)};
    for (size_t p = 0; p < CHIP_PARTITIONS; p++) // 1.0 and 1.5 read as bf16 or as half of an fp32
        for (size_t i = 0; i < CHIP_SBUF_BYTES; i += 4)
            memcpy(c.sbuf + p * SBUF_PITCH + i, (uint32_t[]){0x3f803fc0u}, 4);
    if (pool_threads(c.pool) > 1)
        bench_clock = CLOCK_MONOTONIC;
    printf("%d threads; ratios to one core's FMA probe, medians of %d\n", pool_threads(c.pool),
           samples);
    tiles_bench(&c, samples);
    double fp32 = 0;
    for (int level = HOST_AVX2; level <= (int)host_best(); level++) {
        double ratio = gemm_bench(&c, (HostLevel)level, DT_F32, samples);
        fp32 = ratio > fp32 ? ratio : fp32;
        gemm_bench(&c, (HostLevel)level, DT_BF16, samples);
    }
    printf("bar: fp32 gemm %.3f of the probe, wanted 0.600: %s\n", fp32,
           fp32 >= 0.6 ? "met" : "MISSED");
    pool_free(c.pool);
    return fp32 >= 0.6 ? 0 : 1;
}
