// SPDX-License-Identifier: Apache-2.0
// dma_test.c — strided copies against loops over single elements.
//
// Usage: dma_test [seed [cases]]. A failing case prints the seed that repeats it alone.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chip/core/dma.h"
#include "unit.h"

// --- dma_copy ------------------------------------------------------------------------------------

typedef struct Side { // one operand: a buffer of exactly the bytes the pattern reaches
    int64_t strides[4];
    uint8_t *base;
    size_t bytes, origin; // of element 0
} Side;

// A dense layout of the axes in random order, some with gaps, some walked backwards.
static Side side_make(uint64_t *s, const uint32_t n[4], size_t elem, bool may_repeat) {
    int order[4] = {0, 1, 2, 3};
    for (int i = 3; i > 0; i--) {
        int j = (int)rng_below(s, (uint32_t)i + 1), t = order[i];
        order[i] = order[j], order[j] = t;
    }
    if (rng_below(s, 3) == 0)
        for (int i = 0; i < 4; i++)
            order[i] = i;
    Side side = {0};
    int64_t at = (int64_t)elem;
    size_t reach = 0;
    for (int x = 3; x >= 0; x--) { // order[3] is innermost
        int a = order[x];
        uint32_t count = n[a] ? n[a] : 1;
        if (may_repeat && rng_below(s, 12) == 0)
            continue; // stride 0
        bool back = rng_below(s, 8) == 0;
        side.strides[a] = back ? -at : at;
        reach += (size_t)at * (count - 1);
        side.origin += back ? (size_t)at * (count - 1) : 0;
        at *= count;
        if (rng_below(s, 4) == 0)
            at += (int64_t)(elem * rng_below(s, 9));
    }
    side.bytes = reach + elem;
    side.base = malloc(side.bytes);
    for (size_t i = 0; i < side.bytes; i++)
        side.base[i] = (uint8_t)rng_next(s);
    return side;
}

static void copy_plain(uint8_t *dst, const int64_t d[4], const uint8_t *src, const int64_t s[4],
                       const uint32_t n[4], size_t elem) {
    for (int64_t i = 0; i < n[0] + !n[0]; i++)
        for (int64_t j = 0; j < n[1] + !n[1]; j++)
            for (int64_t k = 0; k < n[2] + !n[2]; k++)
                for (int64_t l = 0; l < n[3] + !n[3]; l++)
                    memcpy(dst + i * d[0] + j * d[1] + k * d[2] + l * d[3],
                           src + i * s[0] + j * s[1] + k * s[2] + l * s[3], elem);
}

static bool copy_check(uint64_t seed, Pool *pool) {
    uint64_t s = seed;
    static const size_t elems[] = {1, 2, 4, 8, 16};
    size_t elem = elems[rng_below(&s, 5)];
    uint32_t n[4], large = rng_below(&s, 4);
    for (uint32_t i = 0; i < 4; i++)
        n[i] = rng_below(&s, 4) == 0 ? rng_below(&s, 2) : 1 + rng_below(&s, i == large ? 300 : 20);
    Side dst = side_make(&s, n, elem, false), src = side_make(&s, n, elem, true);
    uint8_t *want = malloc(dst.bytes), *got = malloc(dst.bytes);
    memcpy(want, dst.base, dst.bytes);
    copy_plain(want + dst.origin, dst.strides, src.base + src.origin, src.strides, n, elem);
    bool ok = true;
    for (int level = 0; ok && level <= (int)host_best(); level++)
        for (int way = 0; ok && way < 4; way++) { // alone or over the pool; to stay or to leave
            memcpy(got, dst.base, dst.bytes);
            dma_copy(way & 1 ? pool : NULL, (HostLevel)level, got + dst.origin, dst.strides,
                     src.base + src.origin, src.strides, n, elem, way & 2);
            ok = !memcmp(want, got, dst.bytes);
            if (!ok)
                printf("seed %llu: level %s way %d: n %u %u %u %u elem %zu\n",
                       (unsigned long long)seed, host_name((HostLevel)level), way, n[0], n[1], n[2],
                       n[3], elem);
        }
    free(want), free(got), free(dst.base), free(src.base);
    return ok;
}

static void test_large(Pool *pool, const char *name, const uint32_t n[4], const int64_t d[4],
                       const int64_t s[4], size_t bytes, size_t elem) {
    uint8_t *src = malloc(bytes), *got = aligned_alloc(64, (bytes + 63) / 64 * 64), *want = malloc(bytes);
    uint64_t rng = 5;
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t x = rng_next(&rng);
        memcpy(src + i, &x, 8);
    }
    memset(got, 0, bytes), memset(want, 0, bytes);
    copy_plain(want, d, src, s, n, elem);
    dma_copy(pool, host_best(), got, d, src, s, n, elem, true);
    expect(!memcmp(want, got, bytes), name, "differs from the plain copy");
    free(src), free(got), free(want);
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    int cases = argc > 2 ? atoi(argv[2]) : argc > 1 ? 1 : 600;
    Pool *pool = pool_make(3);
    int bad = 0;
    for (int i = 0; i < cases; i++)
        bad += !copy_check(seed + (uint64_t)i * 1000003, pool);
    char name[96], why[64];
    snprintf(name, sizeof name, "dma seed %llu, %d cases", (unsigned long long)seed, cases);
    snprintf(why, sizeof why, "%d cases differ", bad);
    expect(bad == 0, name, why);
    test_large(pool, "dma one long run", (uint32_t[4]){0, 0, 0, 1234567}, (int64_t[4]){0, 0, 0, 1},
               (int64_t[4]){0, 0, 0, 1}, 1234567, 1);
    test_large(pool, "dma beyond the caches", (uint32_t[4]){0, 0, 3, 4000001},
               (int64_t[4]){0, 0, 16000011, 4}, (int64_t[4]){0, 0, 16000007, 4}, 48000100, 4);
    test_large(pool, "dma one long strided axis", (uint32_t[4]){0, 0, 0, 100003},
               (int64_t[4]){0, 0, 0, 4}, (int64_t[4]){0, 0, 0, 12}, 1200100, 4);
    test_large(pool, "dma large transpose", (uint32_t[4]){0, 0, 1003, 517},
               (int64_t[4]){0, 0, 517 * 4, 4}, (int64_t[4]){0, 0, 4, 1003 * 4}, 1003 * 517 * 4, 4);
    test_large(pool, "dma transpose into whole lines", (uint32_t[4]){0, 200, 3, 530}, (int64_t[4]){0, 7168, 2304, 4},
               (int64_t[4]){0, 4, 804, 3200}, 200 * 7168 + 64 + 530 * 3200, 4);
    test_large(pool, "dma transpose into whole lines of bf16", (uint32_t[4]){0, 131, 5, 70}, (int64_t[4]){0, 1088, 192, 2},
               (int64_t[4]){0, 2, 262, 1310}, 131 * 1088 + 70 * 1310, 2);
    pool_free(pool);
    return failures != 0;
}
