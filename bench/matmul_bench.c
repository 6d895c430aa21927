// SPDX-License-Identifier: Apache-2.0
// matmul_bench.c — one tile of the tensor engine against this host's own arithmetic, as ratios in one run.
//
// A 128 x 128 x 512 product per host level and type, operands in cache; "rotating": the moving operand walks
// through all of SBUF. Printed per line: best decile and median of the samples, share of the FMA probe of the
// level's own vector width (best decile by best decile). The bars are for one thread.
// Usage: matmul_bench [samples [threads]]
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "bench/probe.h"
#include "chip/core/chip.h"

#define SBUF_PITCH (ISA_SBUF_BYTES + 17 * 64) // as chip/core/core.h
#define PSUM_PITCH (ISA_PSUM_BYTES + 3 * 64)
#define HUGE_PAGE (2u << 20)

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

typedef struct Core {
    uint8_t *sbuf, *psum;
    float *panels;
    Pool *pool;
} Core;

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
    MmLoad load = {.src = c->sbuf, .pitch = SBUF_PITCH, .stride = 1, .stype = b->dtype, .k = 128, .m = 128};
    mm_load(b->level, &st, &load);
    size_t tile_bytes = 512 * dtype_bytes(b->dtype), tiles = ISA_SBUF_BYTES / tile_bytes;
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

static const int tile_types[] = {DT_F32, DT_BF16, DT_F16, DT_TF32, DT_F8E4M3, DT_F8E5M2};
#define TYPES ((int)(sizeof tile_types / sizeof *tile_types))

static int tiles_list(TileBench *list) { // per level: each type hot, then each type rotating
    int n = 0;
    for (int level = HOST_AVX2; level <= (int)host_best(); level++)
        for (int kind = 0; kind < 2 * TYPES; kind++) {
            TileBench *b = &list[n++];
            *b = (TileBench){.level = (HostLevel)level,
                             .dtype = tile_types[kind % TYPES],
                             .rotate = kind >= TYPES};
            snprintf(b->name, sizeof b->name, "tile %s %s%s", host_name(b->level),
                     dtype_row(b->dtype)->name, b->rotate ? " rotating" : "");
        }
    return n;
}

static void tiles_bars(TileBench *list, int n) {
    for (int i = 0; i < n; i++) {
        TileBench *b = &list[i];
        char name[112];
        if (b->level == HOST_AMX)
            continue; // its bar is the stream's
        if (b->dtype == DT_F32) {
            snprintf(name, sizeof name, "%s / FMA probe", b->name);
            bar_print(name, samples_share(&b->s), b->rotate ? 0.75 : 0.88);
        } else {
            TileBench *wide = &list[i - i % TYPES];
            snprintf(name, sizeof name, "%s / f32", b->name);
            bar_print(name, samples_best(&b->s) / samples_best(&wide->s), 0.85);
        }
    }
}

static void tiles_bench(Core *c, int samples) {
    static TileBench list[HOST_COUNT * 2 * TYPES];
    int n = tiles_list(list);
    for (int i = 0; i < samples; i++)
        for (int b = 0; b < n; b++)
            samples_add(&list[b].s, 2.0 * 128 * 128 * 512, tile_once(c, &list[b], i),
                        probe_rate(list[b].level));
    for (int b = 0; b < n; b++)
        samples_print(&list[b].s, list[b].name);
    if (pool_threads(c->pool) == 1)
        tiles_bars(list, n);
}

int main(int argc, char **argv) {
    int samples = argc > 1 ? atoi(argv[1]) : 51, threads = argc > 2 ? atoi(argv[2]) : 1;
    if (samples < 1 || samples > SAMPLES_MAX || host_best() == HOST_PORTABLE) {
        fprintf(stderr, "usage: matmul_bench [samples [threads]] on a host with AVX2\n");
        return 2;
    }
    Core c = {.sbuf = memory_make((size_t)PARTITIONS * SBUF_PITCH),
              .psum = memory_make((size_t)PARTITIONS * PSUM_PITCH),
              .panels = (float *)memory_make(MM_PANEL_BYTES),
              .pool = pool_make(threads)};
    for (size_t p = 0; p < PARTITIONS; p++) // 1.0 and 1.5 read as bf16 or as half of an fp32
        for (size_t i = 0; i < ISA_SBUF_BYTES; i += 4)
            memcpy(c.sbuf + p * SBUF_PITCH + i, (uint32_t[]){0x3f803fc0u}, 4);
    if (pool_threads(c.pool) > 1)
        bench_clock = CLOCK_MONOTONIC;
    printf("%d threads, %d samples; best decile, median, share of one core's FMA probe\n",
           pool_threads(c.pool), samples);
    tiles_bench(&c, samples);
    pool_free(c.pool);
    return 0;
}
