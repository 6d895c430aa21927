// SPDX-License-Identifier: Apache-2.0
// dma_test.c — strided copies and casting copies against loops over single elements.
//
// Usage: dma_test [seed [cases]]. A failing case prints the seed that repeats it alone.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "chip/dma.h"

static int failures;

static void report(const char *name, bool ok, const char *why) {
    if (ok)
        printf("ok %s\n", name);
    else
        printf("FAIL %s: %s\n", name, why), failures++;
}

static uint64_t rng_next(uint64_t *s) { // splitmix64
    uint64_t z = *s += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}
static uint32_t rng_below(uint64_t *s, uint32_t n) {
    return (uint32_t)(rng_next(s) >> 32) % n;
}

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
    uint8_t *src = malloc(bytes), *got = malloc(bytes), *want = malloc(bytes);
    uint64_t rng = 5;
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t x = rng_next(&rng);
        memcpy(src + i, &x, 8);
    }
    memset(got, 0, bytes), memset(want, 0, bytes);
    copy_plain(want, d, src, s, n, elem);
    dma_copy(pool, host_best(), got, d, src, s, n, elem, true);
    report(name, !memcmp(want, got, bytes), "differs from the plain copy");
    free(src), free(got), free(want);
}

// --- tensor_copy ---------------------------------------------------------------------------------

static const int cast_types[] = {DT_F32,    DT_BF16,   DT_F16,  DT_F8E4M3, DT_F8E4M3FN,
                                 DT_F8E5M2, DT_F8E3M4, DT_TF32, DT_I8,     DT_UI8,
                                 DT_I16,    DT_I32,    DT_UI32, DT_I1};
enum { CAST_TYPES = sizeof cast_types / sizeof *cast_types, CAST_N = 65536 };

// Sources that meet every case of the conversions: all codes of short types; for 32 bits all upper
// halves with lower halves around ties.
static void cast_fill(int type, uint8_t *p, uint32_t i, uint32_t round) {
    static const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x1000, 0xf000, 0x5555};
    uint32_t u = dtype_bytes(type) == 4 ? i << 16 | low[round % 9] : i;
    if (type == DT_I1)
        u &= 1;
    memcpy(p, &u, dtype_bytes(type));
}

static bool is_nan(int type, const uint8_t *p) {
    return dtype_is_float(type) && isnan(dtype_to_f64(type, p));
}

// Against dtype.h for floats: values, and NaN for NaN.
static bool cast_right(int dst, const uint8_t *got, int src, const uint8_t *from) {
    if (dst == src)
        return !memcmp(from, got, dtype_bytes(dst));
    if (!dtype_is_float(dst) || !dtype_is_float(src))
        return true; // test_cast_ints
    uint8_t want[8];
    dtype_from_f64(dst, want, dtype_to_f64(src, from));
    bool ok = is_nan(dst, want) ? is_nan(dst, got) : !memcmp(want, got, dtype_bytes(dst));
    if (!ok)
        printf("%s to %s: %.9g\n", dtype_row(src)->name, dtype_row(dst)->name,
               dtype_to_f64(src, from));
    return ok;
}

static void test_casts(Pool *pool) {
    uint8_t *src = malloc(CAST_N * 4), *want = malloc(CAST_N * 4), *got = malloc(CAST_N * 4);
    bool right = true, agree = true;
    for (uint32_t t = 0; t < CAST_TYPES * CAST_TYPES; t++) {
        int from = cast_types[t / CAST_TYPES], to = cast_types[t % CAST_TYPES];
        uint32_t rounds =
            dtype_bytes(from) == 4 && dtype_is_float(from) && dtype_is_float(to) ? 9 : 1;
        uint32_t n = dtype_bytes(from) == 1 ? 256 : CAST_N, cols = n / 16 - 3;
        size_t fe = dtype_bytes(from), te = dtype_bytes(to);
        for (uint32_t round = 0; round < rounds; round++) {
            for (uint32_t i = 0; i < n; i++)
                cast_fill(from, src + i * fe, i, round);
            memset(want, 0x3c, CAST_N * 4);
            tensor_copy(NULL, HOST_PORTABLE, want, n * te, to, 1, src, n * fe, from, 1, 1, n);
            for (uint32_t i = 0; i < n; i++)
                right = right && cast_right(to, want + i * te, from, src + i * fe);
            for (int level = 1; level <= (int)host_best(); level++) {
                memset(got, 0x3c, CAST_N * 4);
                tensor_copy(pool, (HostLevel)level, got, n / 16 * te, to, 1, src, n / 16 * fe, from,
                            1, 16,
                            cols); // rows with a tail
                for (uint32_t p = 0; p < 16; p++)
                    agree = agree &&
                            !memcmp(want + p * (n / 16) * te, got + p * (n / 16) * te, cols * te);
                agree = agree && got[cols * te] == 0x3c;
            }
        }
    }
    report("casts follow dtype.h", right, "a value differs");
    report("cast levels agree", agree, "bits differ between levels");
    free(src), free(want), free(got);
}

static int64_t cast_int(double v, int to) {
    uint8_t out[8];
    float f = (float)v;
    tensor_copy(NULL, HOST_PORTABLE, out, 8, to, 1, (uint8_t *)&f, 4, DT_F32, 1, 1, 1);
    return dtype_to_i64(to, out);
}

static float cast_from_i64(int64_t v, int from) {
    float f;
    tensor_copy(NULL, HOST_PORTABLE, (uint8_t *)&f, 4, DT_F32, 1, (uint8_t *)&v, 8, from, 1, 1, 1);
    return f;
}

static void test_cast_ints(void) {
    bool ok = cast_int(2.9, DT_I8) == 2 && cast_int(-2.9, DT_I8) == -2 &&
              cast_int(1e9, DT_I8) == 127 && cast_int(-1e9, DT_I8) == -128 &&
              cast_int(-5, DT_UI8) == 0 && cast_int(300, DT_UI8) == 255 &&
              cast_int(NAN, DT_I32) == 0 && cast_int(INFINITY, DT_I64) == INT64_MAX &&
              cast_int(-INFINITY, DT_I64) == INT64_MIN && cast_int(1e30, DT_UI64) == -1 &&
              cast_int(0x1p63, DT_UI64) == INT64_MIN && cast_int(0.5, DT_I1) == 1 &&
              cast_int(-0.0, DT_I1) == 0;
    report("float to int", ok, "wrong value");
    ok = true;
    uint64_t s = 3;
    for (int i = 0; i < 20000; i++) {
        int64_t v = (int64_t)(rng_next(&s) >> rng_below(&s, 64));
        if (i % 2)
            v |= 1, v &= ~(0x7fffffll << rng_below(&s, 40)); // near ties
        ok = ok && cast_from_i64(v, DT_I64) == (float)v &&
             cast_from_i64(v, DT_UI64) == (float)(uint64_t)v;
    }
    report("int to float", ok, "rounded twice");
}

static void test_cast_strides(uint64_t seed) {
    bool ok = true;
    uint64_t s = seed;
    for (int i = 0; i < 200; i++) {
        int from = cast_types[rng_below(&s, CAST_TYPES)],
            to = cast_types[rng_below(&s, CAST_TYPES)];
        uint32_t parts = 1 + rng_below(&s, 9), cols = 1 + rng_below(&s, 50);
        uint32_t fs = 1 + rng_below(&s, 3), ts = 1 + rng_below(&s, 3);
        size_t fe = dtype_bytes(from), te = dtype_bytes(to);
        size_t fp = cols * fs * fe, tp = cols * ts * te;
        uint8_t *src = malloc(parts * fp), *got = malloc(parts * tp);
        for (size_t b = 0; b < parts * fp; b++)
            src[b] = from == DT_I1 ? rng_next(&s) & 1 : (uint8_t)rng_next(&s);
        memset(got, 0x77, parts * tp);
        tensor_copy(NULL, host_best(), got, tp, to, (int32_t)ts, src, fp, from, (int32_t)fs, parts,
                    cols);
        for (uint32_t p = 0; p < parts; p++)
            for (uint32_t j = 0; j < cols * ts; j++) {
                uint8_t *at = got + p * tp + j * te, one[8];
                memset(one, 0x77, 8);
                if (j % ts == 0)
                    tensor_copy(NULL, HOST_PORTABLE, one, te, to, 1,
                                src + p * fp + j / ts * fs * fe, fe, from, 1, 1, 1);
                ok = ok && !memcmp(at, one, te);
            }
        free(src), free(got);
    }
    report("cast strides", ok, "a wrong element or one too many");
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
    report(name, bad == 0, why);
    test_large(pool, "dma one long run", (uint32_t[4]){0, 0, 0, 1234567}, (int64_t[4]){0, 0, 0, 1},
               (int64_t[4]){0, 0, 0, 1}, 1234567, 1);
    test_large(pool, "dma beyond the caches", (uint32_t[4]){0, 0, 3, 4000001},
               (int64_t[4]){0, 0, 16000011, 4}, (int64_t[4]){0, 0, 16000007, 4}, 48000100, 4);
    test_large(pool, "dma one long strided axis", (uint32_t[4]){0, 0, 0, 100003},
               (int64_t[4]){0, 0, 0, 4}, (int64_t[4]){0, 0, 0, 12}, 1200100, 4);
    test_large(pool, "dma large transpose", (uint32_t[4]){0, 0, 1003, 517},
               (int64_t[4]){0, 0, 517 * 4, 4}, (int64_t[4]){0, 0, 4, 1003 * 4}, 1003 * 517 * 4, 4);
    test_casts(pool);
    test_cast_ints();
    test_cast_strides(seed);
    pool_free(pool);
    return failures != 0;
}
