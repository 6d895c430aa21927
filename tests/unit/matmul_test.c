// SPDX-License-Identifier: Apache-2.0
// matmul_test.c — every host level against the plain C definition, bit for bit, and the definition
// against loops written here.
//
// The AMX level runs everywhere AVX-512 does, over a model of its four instructions; where the hardware has
// them, over them as well. `make levels` runs all of it over a model of AVX-512 too. Usage: matmul_test [seed [cases]]. A failing case prints the seed that repeats it alone.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chip/core/chip.h"
#include "chip/core/dma.h"
#include "chip/host/matmul.h"
#include "unit.h"

// --- levels, and the one after the last: AMX by a model of its instructions --------------------------

#define LEVEL_MODEL HOST_COUNT

static const char *level_name(int level) {
    return level == LEVEL_MODEL ? "amx model" : host_name((HostLevel)level);
}

static int level_next(int level) { // portable first; -1 after the last
    int best = (int)host_best();
    if (level < best)
        return level + 1;
    return best >= HOST_AVX512 && level < LEVEL_MODEL ? LEVEL_MODEL : -1;
}

static void level_load(int level, MmStationary *st, const MmLoad *load) {
    mm_load(level == LEVEL_MODEL ? HOST_AMX : (HostLevel)level, st, load);
}

#if defined(__x86_64__)
#include "tests/model/tiles.h"

#define tile_zero(t) memset(&model[t], 0, sizeof model[t])
#define tile_load(t, at, pitch) model_load(t, at, pitch)
#define tile_store(t, at, pitch) model_store(t, at, pitch)
#define tile_multiply(c, a, b) model_multiply(c, a, b)
#define BLOCK_FN static __attribute__((noinline)) void model_block
#include "chip/host/matmul_block.h"

static void level_multiply(int level, const MmCall *c, uint32_t j0, uint32_t j1) {
    if (level == LEVEL_MODEL && mm_in_tiles(c->st) && mm_fits_bf16(c->stype) && j0 < j1)
        mm_multiply_tiles(c, j0, j1, model_block);
    else
        mm_multiply(c, j0, j1);
}
#else
static void level_multiply(int level, const MmCall *c, uint32_t j0, uint32_t j1) {
    (void)level;
    mm_multiply(c, j0, j1);
}
#endif

static double rng_unit(uint64_t *s) {
    return (double)(rng_next(s) >> 11) * 0x1p-53 * 2 - 1;
}

static const int types[] = {DT_F32,    DT_BF16,     DT_F16,    DT_TF32,
                            DT_F8E4M3, DT_F8E4M3FN, DT_F8E5M2, DT_F8E3M4};

enum { FILL_PLAIN, FILL_BITS, FILL_TINY, FILL_EDGE, FILL_MIXED, FILL_COUNT };

// Values whose products and sums fall on both sides of the smallest normal number.
static const double tiny_values[] = {
    0x1p-63,  -0x1p-63, 0x1p-75,   0x1.8p-76,   -0x1.8p-76, 0x1.4p-76,  -0x1.4p-76, 0x1p-76,
    -0x1p-76, 0x1p-126, -0x1p-126, 0x1.fcp-127, 0x1.01p-63, -0x1.fp-64, 0x1p-140,   1,
    -1,       0,        -0.0,      0x1p-12,     -0x1p-13,   0x1p-24};

// Few values, so that chains often stand at 2^-126 when a product of -1.5 * 2^-151 comes.
static const double edge_values[] = {0x1p-63, -0x1.8p-76, 0x1p-75, 0, 0};

static void fill_element(uint64_t *s, uint8_t *p, int type, int fill) {
    if (fill == FILL_MIXED)
        fill = rng_below(s, 50) ? FILL_PLAIN : FILL_BITS;
    if (fill == FILL_BITS) {
        uint64_t bits = rng_next(s);
        memcpy(p, &bits, dtype_bytes(type));
    } else {
        uint32_t n = sizeof tiny_values / sizeof *tiny_values;
        dtype_from_f64(type, p,
                       fill == FILL_TINY   ? tiny_values[rng_below(s, n)]
                       : fill == FILL_EDGE ? edge_values[rng_below(s, 5)]
                                           : rng_unit(s));
    }
}

typedef struct Matrix { // exactly as many bytes as may be touched
    uint8_t *base, *at; // at = element [0][0]
    size_t pitch, bytes;
    int32_t stride;
    int type;
} Matrix;

static Matrix matrix_make(uint64_t *s, int type, uint32_t rows, uint32_t cols, int32_t stride,
                          int fill) {
    size_t e = dtype_bytes(type), width = ((size_t)(cols - 1) * (size_t)abs(stride) + 1) * e;
    Matrix m = {.pitch = width + rng_below(s, 3) * 4 * e, .stride = stride, .type = type};
    m.bytes = (rows - 1) * m.pitch + width;
    m.base = malloc(m.bytes);
    memset(m.base, 0x5a, m.bytes);
    m.at = m.base + (stride < 0 ? width - e : 0);
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < cols; j++)
            fill_element(s, m.at + i * m.pitch + (ptrdiff_t)j * stride * (ptrdiff_t)e, type, fill);
    return m;
}

typedef struct Case {
    uint32_t k, m, n, cut; // the product is done as [0, cut) and [cut, n)
    Matrix s, v, d;
    bool accumulate;
} Case;

static int32_t random_stride(uint64_t *s) {
    static const int32_t strides[] = {2, 3, -1, -2};
    return rng_below(s, 8) ? 1 : strides[rng_below(s, 4)];
}

static uint32_t random_size(uint64_t *s, uint32_t max) { // often small, sometimes full
    uint32_t r = rng_below(s, 8);
    return r == 0 ? max : r < 4 ? 1 + rng_below(s, max < 40 ? max : 40) : 1 + rng_below(s, max);
}

static Case case_make(uint64_t seed) {
    uint64_t s = seed;
    Case c = {.k = random_size(&s, 128), .m = random_size(&s, 128), .n = random_size(&s, 512)};
    int st = types[rng_below(&s, 8)], vt = rng_below(&s, 4) ? st : types[rng_below(&s, 8)];
    int fill = (int)rng_below(&s, FILL_COUNT);
    c.cut = rng_below(&s, 3) ? 0 : rng_below(&s, c.n + 1);
    c.s = matrix_make(&s, st, c.k, c.m, random_stride(&s), fill);
    c.v = matrix_make(&s, vt, c.k, c.n, random_stride(&s), fill);
    c.d = matrix_make(&s, DT_F32, c.m, c.n, random_stride(&s), fill);
    c.accumulate = rng_below(&s, 2);
    return c;
}

static void case_free(Case *c) {
    free(c->s.base), free(c->v.base), free(c->d.base);
}

static void case_run(const Case *c, int level, Pool *pool, uint8_t *result) {
    float *panels = aligned_alloc(64, MM_PANEL_BYTES);
    memset(panels, 0xff, MM_PANEL_BYTES);
    memcpy(result, c->d.base, c->d.bytes);
    MmStationary st = {.panels = panels};
    level_load(level, &st, &(MmLoad){c->s.at, c->s.pitch, c->s.stride, c->s.type, c->k, c->m, false});
    MmCall call = {.st = &st,
                   .dst = (float *)(result + (c->d.at - c->d.base)),
                   .dst_pitch = c->d.pitch,
                   .dst_stride = c->d.stride,
                   .src = c->v.at,
                   .src_pitch = c->v.pitch,
                   .src_stride = c->v.stride,
                   .stype = c->v.type,
                   .accumulate = c->accumulate,
                   .next_src = c->v.at};
    if (pool && level != LEVEL_MODEL) {
        mm_run(pool, &call, c->n);
    } else {
        level_multiply(level, &call, 0, c->cut);
        level_multiply(level, &call, c->cut, c->n);
    }
    free(panels);
}

// The whole buffers must agree, padding between the elements included.
static bool case_check(uint64_t seed, Pool *pool) {
    Case c = case_make(seed);
    uint8_t *want = malloc(c.d.bytes), *got = malloc(c.d.bytes);
    bool ok = true;
    case_run(&c, HOST_PORTABLE, NULL, want);
    for (int level = HOST_PORTABLE; ok && level >= 0; level = level_next(level))
        for (int way = 0; ok && way < 3; way++) { // alone, over the pool, with the caller flushing
            HostFp old = host_fp_begin(way == 2 ? HOST_FP_FLUSH : HOST_FP_IEEE);
            case_run(&c, level, way == 1 ? pool : NULL, got);
            host_fp_end(old);
            ok = !memcmp(want, got, c.d.bytes);
            if (!ok)
                printf("seed %llu: level %s way %d differs: k %u m %u n %u cut %u %s x %s strides "
                       "%d %d %d "
                       "accumulate %d\n",
                       (unsigned long long)seed, level_name(level), way, c.k, c.m, c.n,
                       c.cut, dtype_row(c.s.type)->name, dtype_row(c.v.type)->name, c.s.stride,
                       c.v.stride, c.d.stride, c.accumulate);
        }
    free(want), free(got);
    case_free(&c);
    return ok;
}

// --- operands in blocks, sums that go elsewhere ----------------------------------------------------------------

typedef struct Operand { // [k][cols] in some order of axes
    uint8_t *at;
    int64_t row, col; // bytes
    uint32_t k, cols;
    bool chunks, stream; // how it goes into blocks
} Operand;

static Operand operand_make(uint64_t *s, int type, uint32_t k, uint32_t cols, int fill) {
    int64_t e = (int64_t)dtype_bytes(type);
    Operand o = {.at = malloc((size_t)k * cols * (size_t)e), .k = k, .cols = cols};
    bool turned = rng_below(s, 2);
    o.row = turned ? e : e * cols, o.col = turned ? e * k : e;
    for (uint32_t i = 0; i < k; i++)
        for (uint32_t j = 0; j < cols; j++)
            fill_element(s, o.at + i * o.row + j * o.col, type, fill);
    o.chunks = rng_below(s, 2), o.stream = rng_below(s, 2);
    return o;
}

// The operand in blocks, for a level that takes them.
static uint8_t *operand_blocks(const Operand *o, int type) {
    int64_t e = (int64_t)dtype_bytes(type);
    size_t bytes = 512 / MM_BLOCK_COLS * MM_BLOCK_FLOATS * sizeof(float);
    uint8_t *blocks = aligned_alloc(64, bytes);
    memset(blocks, 0x7f, bytes);
    uint32_t n[4] = {o->k, 1, 1, o->cols};
    int64_t from[4] = {o->row, 0, 0, o->col}, to[4] = {0, 0, 0, e};
    if (o->cols % MM_BLOCK_COLS == 0 && o->chunks) // in chunks of a block
        n[2] = o->cols / MM_BLOCK_COLS, n[3] = MM_BLOCK_COLS, from[2] = MM_BLOCK_COLS * o->col, to[2] = MM_BLOCK_COLS * e;
    DmaCopy copy = dma_blocks(blocks, to, o->at, from, n, (size_t)e);
    copy.stream = o->stream; // as large ones do
    size_t half = copy.rows / 2;
    dma_rows(&copy, half, copy.rows);
    dma_rows(&copy, 0, half);
    return blocks;
}

// Two products of one chain. apart: sums go to dst, and what they are added to lies elsewhere.
static void operands_run(HostLevel level, int type, const Operand *s, const Operand *v, const uint32_t size[3], float *dst,
                         bool accumulate, bool blocks, bool apart) {
    int64_t e = (int64_t)dtype_bytes(type);
    uint32_t k = size[0], m = size[1], n = size[2];
    float *panels = aligned_alloc(64, MM_PANEL_BYTES), *sums = aligned_alloc(64, 128 * 512 * sizeof(float));
    memcpy(sums, dst, 128 * 512 * sizeof(float));
    MmStationary st = {.panels = panels};
    uint8_t *s_blocks = blocks ? operand_blocks(s, type) : NULL, *v_blocks = blocks ? operand_blocks(v, type) : NULL;
    MmLoad load = {.src = blocks ? s_blocks : s->at, .pitch = (size_t)s->row, .stride = (int32_t)(s->col / e), .stype = type,
                   .k = k, .m = m, .blocks = blocks};
    (apart ? mm_load_there : mm_load)(level, &st, &load);
    MmCall call = {.st = &st, .dst = apart ? sums : dst, .dst_pitch = 512 * sizeof(float), .dst_stride = 1,
                   .src = blocks ? v_blocks : v->at, .src_pitch = (size_t)v->row, .src_stride = (int32_t)(v->col / e),
                   .stype = type, .accumulate = accumulate, .blocks = blocks, .goes_on = true};
    mm_multiply(&call, 0, n);
    call.goes_on = false, call.accumulate = true, call.out = apart ? dst : NULL, call.out_pitch = 512 * sizeof(float);
    uint32_t cut = mm_piece_at(n, 1, 2);
    mm_multiply(&call, cut, n);
    mm_multiply(&call, 0, cut);
    free(panels), free(sums), free(s_blocks), free(v_blocks);
}

static bool operands_check(uint64_t seed) {
    uint64_t s = seed;
    int type = rng_below(&s, 2) ? DT_F32 : DT_BF16, fill = (int)rng_below(&s, FILL_COUNT);
    uint32_t k = random_size(&s, 128), size[3] = {type == DT_F32 ? k : (k + 3) / 4 * 4, random_size(&s, 128), random_size(&s, 512)};
    Operand a = operand_make(&s, type, size[0], size[1], fill), b = operand_make(&s, type, size[0], size[2], fill);
    size_t bytes = 128 * 512 * sizeof(float);
    float *old = aligned_alloc(64, bytes), *want = aligned_alloc(64, bytes), *got = aligned_alloc(64, bytes);
    for (uint32_t i = 0; i < 128 * 512; i++)
        fill_element(&s, (uint8_t *)&old[i], DT_F32, fill);
    bool accumulate = rng_below(&s, 2), ok = true;
    memcpy(want, old, bytes);
    operands_run(HOST_PORTABLE, type, &a, &b, size, want, accumulate, false, false);
    for (HostLevel level = HOST_PORTABLE; ok && level <= host_best(); level++)
        for (int way = 0; ok && way < 4; way++) {
            bool blocks = way & 1;
            if (blocks && !mm_takes_blocks(level, type))
                continue;
            memcpy(got, old, bytes);
            operands_run(level, type, &a, &b, size, got, accumulate, blocks, way & 2);
            ok = !memcmp(want, got, bytes);
            if (!ok)
                printf("seed %llu: level %d way %d differs: k %u m %u n %u\n", (unsigned long long)seed, (int)level, way, size[0],
                       size[1], size[2]);
        }
    free(old), free(want), free(got);
    free(a.at), free(b.at);
    return ok;
}

static bool operands_agree(uint64_t seed, int cases) {
    bool ok = true;
    for (int i = 0; ok && i < cases; i++)
        ok = operands_check(seed * 7919 + (uint64_t)i);
    return ok;
}

// The two orders, written down once more for values that stay normal.
static float order_wide(const float *a, const float *b, uint32_t k, float old, bool accumulate) {
    float chain = 0;
    for (uint32_t i = 0; i < k; i++)
        chain = fmaf(a[i], b[i], chain);
    return accumulate ? old + chain : chain;
}

static float order_narrow(const float *a, const float *b, uint32_t k, float old, bool accumulate) {
    float sum = accumulate ? old : 0;
    for (uint32_t g = 0; g < k; g += 32) {
        float even = 0, odd = 0;
        for (uint32_t i = g; i < k && i < g + 32; i += 2)
            even = fmaf(a[i], b[i], even);
        for (uint32_t i = g + 1; i < k && i < g + 32; i += 2)
            odd = fmaf(a[i], b[i], odd);
        sum = sum + (even + odd);
    }
    return sum;
}

static void test_orders(int level, uint64_t seed) {
    bool ok = true;
    uint32_t differ = 0;
    for (uint32_t t = 0; t < 2 * 8; t++) {
        uint64_t s = seed + t;
        uint32_t k = t < 4 ? 128 : 1 + rng_below(&s, 128);
        int type = types[t % 8];
        Case c = {.k = k, .m = 1, .n = 64, .accumulate = t & 1};
        c.s = matrix_make(&s, type, k, 1, 1, FILL_PLAIN);
        c.v = matrix_make(&s, type, k, 64, 1, FILL_PLAIN);
        c.d = matrix_make(&s, DT_F32, 1, 64, 1, FILL_PLAIN);
        float got[64], old, a[128], b[128];
        case_run(&c, level, NULL, (uint8_t *)got);
        for (uint32_t j = 0; j < 64; j++) {
            for (uint32_t i = 0; i < k; i++) {
                a[i] = (float)dtype_to_f64(type, c.s.at + i * c.s.pitch);
                b[i] = (float)dtype_to_f64(type, c.v.at + i * c.v.pitch + j * dtype_bytes(type));
            }
            memcpy(&old, c.d.at + j * 4, 4);
            float wide = order_wide(a, b, k, old, c.accumulate);
            float narrow = order_narrow(a, b, k, old, c.accumulate);
            differ += wide != narrow;
            ok = ok && got[j] == (type == DT_F32 ? wide : narrow);
        }
        case_free(&c);
    }
    char name[64];
    snprintf(name, sizeof name, "orders %s", level_name(level));
    expect(ok && differ, name,
           ok ? "the two orders never differed: the test is blind" : "wrong order");
}

// One product of two scalars, all rows of k from the arrays.
static float product(int level, int type, uint32_t k, const double *a, const double *b,
                     float old, bool accumulate) {
    uint8_t s[128 * 4], v[128 * 4];
    size_t e = dtype_bytes(type);
    for (uint32_t i = 0; i < k; i++) {
        dtype_from_f64(type, s + i * e, a[i]);
        dtype_from_f64(type, v + i * e, b[i]);
    }
    float *panels = aligned_alloc(64, MM_PANEL_BYTES), out = old;
    MmStationary st = {.panels = panels};
    level_load(level, &st, &(MmLoad){s, e, 1, type, k, 1, false});
    MmCall c = {.st = &st,
                .dst = &out,
                .dst_pitch = 4,
                .dst_stride = 1,
                .src = v,
                .src_pitch = e,
                .src_stride = 1,
                .stype = type,
                .accumulate = accumulate};
    level_multiply(level, &c, 0, 1);
    free(panels);
    return out;
}

static uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static void test_rules(int level) {
    const double tiny[] = {0x1p-100}, one[] = {1}, neg[] = {-0x1p-100}, inf[] = {INFINITY},
                 zero[] = {0};
    const double up_a[] = {0x1p-63, 0, -0x1.8p-76}, up_b[] = {0x1p-63, 0, 0x1p-75};
    const double at_a[] = {0x1p-63, 0, -0x1p-76}, at_b[] = {0x1p-63, 0, 0x1p-75};
    struct {
        const char *what;
        float got;
        uint32_t want;
    } rules[] = {
        {"f32 keeps subnormals", product(level, DT_F32, 1, tiny, (double[]){0x1p-40}, 0, false),
         0x00000200},
        {"f32 adds to a subnormal", product(level, DT_F32, 1, zero, one, 0x1p-149f, true), 1},
        {"f32 overwrites with the chain itself", product(level, DT_F32, 1, neg, tiny, 5, false),
         0x80000000},
        {"bf16 flushes products", product(level, DT_BF16, 1, tiny, (double[]){0x1p-40}, 0, false),
         0},
        {"bf16 flushes inputs",
         product(level, DT_BF16, 1, (double[]){0x1p-130}, (double[]){0x1p60}, 0, false), 0},
        {"bf16 flushes the sum it adds to", product(level, DT_BF16, 1, zero, one, 0x1p-149f, true),
         0},
        {"bf16 sums start from zero", product(level, DT_BF16, 1, neg, tiny, 5, false), 0},
        {"bf16 keeps a zero's sign where k ends",
         product(level, DT_BF16, 2, (double[]){-0x1p-100, -0x1p-100}, (double[]){0x1p-40, 0x1p-40},
                 -0.0f, true),
         0x80000000},
        {"just under the smallest normal: flushed",
         product(level, DT_BF16, 3, up_a, up_b, 0, false), 0},
        {"rounds up to the smallest normal: kept", product(level, DT_BF16, 3, at_a, at_b, 0, false),
         0x00800000},
        {"f32 nan is canonical", product(level, DT_F32, 1, inf, zero, 0, false), MM_NAN},
        {"bf16 nan is canonical", product(level, DT_BF16, 1, inf, zero, 0, true), MM_NAN},
        {"f16 subnormal inputs count",
         product(level, DT_F16, 1, (double[]){0x1p-24}, one, 0, false), 0x33800000},
        {"f8 subnormal inputs count",
         product(level, DT_F8E4M3, 1, (double[]){0x1p-9}, one, 0, false), 0x3b000000},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char name[96], why[64];
        snprintf(name, sizeof name, "%s %s", level_name(level), rules[i].what);
        snprintf(why, sizeof why, "got %08x, want %08x", bits_of(rules[i].got), rules[i].want);
        expect(bits_of(rules[i].got) == rules[i].want, name, why);
    }
    uint8_t word[4];
    uint32_t u = 0x3f801fff, nan = 0x7f800001;
    memcpy(word, &u, 4);
    bool ok = mm_widen(DT_TF32, word) == 1.0f;
    memcpy(word, &nan, 4);
    expect(ok && isnan(mm_widen(DT_TF32, word)), "tf32 drops low bits, keeps nan", "wrong value");
}

// The vector widening of every 8-bit code and of all 16-bit codes.
static void test_widen(HostLevel level) {
    const MmKernels *kn = NULL;
#if defined(__x86_64__)
    kn = level >= HOST_AVX512 ? &mm_avx512 : level == HOST_AVX2 ? &mm_avx2 : NULL;
#endif
    if (!kn)
        return;
    static uint8_t in[65536 * 4];
    static _Alignas(64) float out[65536];
    bool ok = true;
    for (size_t t = 0; t < 8; t++) {
        size_t e = dtype_bytes(types[t]), n = e == 1 ? 256 : 65536;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t u = e == 4 ? i * 65537u : i;
            memcpy(in + i * e, &u, e);
        }
        kn->widen(out, n, in, n * e, types[t], 1, (uint32_t)n);
        for (uint32_t i = 0; i < n; i++) {
            float want = mm_widen(types[t], in + i * e);
            ok = ok && (isnan(want) ? isnan(out[i]) : bits_of(out[i]) == bits_of(want));
        }
    }
    char name[64];
    snprintf(name, sizeof name, "widen %s", host_name(level));
    expect(ok, name, "differs from mm_widen");
}

// --- runs of steps -----------------------------------------------------------------------------

enum { RUN_PARTS = 128, RUN_COLS = 640, RUN_SRC = 4, RUN_PITCH = RUN_COLS * 4 + 64 };

typedef struct RunCase {
    MmStep steps[MM_STEPS_MAX];
    uint32_t count;
    uint8_t *src;  // RUN_SRC matrices of fp32 bits, [partition][column] each
    uint8_t *psum; // what the results start from
} RunCase;

static const uint8_t *run_src(const RunCase *c, uint64_t *s) {
    return c->src + rng_below(s, RUN_SRC) * (size_t)RUN_PARTS * RUN_PITCH + rng_below(s, 3) * 64;
}

// Products of up to 128 columns into five parts of PSUM, once in a while across two of them.
static RunCase run_make(uint64_t *s) {
    RunCase c = {.count = 1 + rng_below(s, 24)};
    size_t bytes = (size_t)RUN_PARTS * RUN_PITCH;
    c.src = malloc(RUN_SRC * bytes), c.psum = malloc(bytes);
    for (size_t i = 0; i < RUN_SRC * bytes; i += 4)
        fill_element(s, c.src + i, DT_F32, FILL_PLAIN);
    memset(c.psum, 0, bytes);
    uint32_t k = 0, m = 0, type = 0;
    bool crosses = rng_below(s, 4) == 0;
    for (uint32_t i = 0; i < c.count; i++) {
        MmStep *t = &c.steps[i];
        *t = (MmStep){0};
        if (i == 0 || rng_below(s, 4)) {
            k = random_size(s, 128), m = random_size(s, 128), type = rng_below(s, 8);
            t->load = (MmLoad){run_src(&c, s), RUN_PITCH, 1, types[type], k, m, false};
        }
        uint32_t col = rng_below(s, 5) * 128 + (crosses && rng_below(s, 8) == 0 ? 64 : 0);
        t->n = col + 128 > RUN_COLS ? 64 : 128;
        t->call = (MmCall){.dst_pitch = RUN_PITCH, .dst_stride = 1, .src = run_src(&c, s),
                           .src_pitch = RUN_PITCH, .src_stride = 1, .stype = types[type],
                           .accumulate = rng_below(s, 4)};
        t->dst_begin = col * 4, t->dst_end = (col + t->n) * 4;
    }
    return c;
}

// The results, then a product with what the array holds at the end.
static void run_once(const RunCase *c, HostLevel level, Pool *pool, uint8_t *psum) {
    MmStep steps[MM_STEPS_MAX];
    MmStationary array = {.panels = aligned_alloc(64, MM_PANEL_BYTES)};
    memcpy(psum, c->psum, (size_t)RUN_PARTS * RUN_PITCH);
    for (uint32_t i = 0; i < c->count; i++) {
        steps[i] = c->steps[i];
        steps[i].call.dst = (float *)(psum + steps[i].dst_begin);
    }
    mm_run_steps(pool, level, &array, steps, c->count);
    MmCall last = steps[c->count - 1].call;
    last.st = &array, last.accumulate = true;
    mm_multiply(&last, 0, steps[c->count - 1].n);
    free(array.panels);
}

static void test_runs(uint64_t seed, int cases) {
    Pool *pools[] = {NULL, pool_make(2), pool_make(3)};
    size_t bytes = (size_t)RUN_PARTS * RUN_PITCH;
    uint8_t *want = malloc(bytes), *got = malloc(bytes);
    int bad = 0;
    for (int i = 0; i < cases; i++) {
        uint64_t s = seed + (uint64_t)i * 7919;
        RunCase c = run_make(&s);
        run_once(&c, HOST_PORTABLE, NULL, want);
        for (int level = HOST_PORTABLE; level <= (int)host_best(); level++)
            for (int p = 0; p < 3; p++) {
                run_once(&c, (HostLevel)level, pools[p], got);
                if (memcmp(want, got, bytes)) {
                    printf("seed %llu: run of %u steps, level %s, %d threads differs\n",
                           (unsigned long long)(seed + (uint64_t)i * 7919), c.count,
                           host_name((HostLevel)level), pool_threads(pools[p]));
                    bad++;
                }
            }
        free(c.src), free(c.psum);
    }
    free(want), free(got);
    pool_free(pools[1]), pool_free(pools[2]);
    char why[64];
    snprintf(why, sizeof why, "%d differ", bad);
    expect(bad == 0, "runs of steps agree on 1, 2 and 3 threads", why);
}

// The definition itself must not depend on the machine: the results of fixed cases, hashed.
static void test_digest(void) {
    uint64_t hash = 0xcbf29ce484222325ull; // FNV-1a
    for (uint64_t seed = 1; seed <= 60; seed++) {
        Case c = case_make(seed);
        uint8_t *out = malloc(c.d.bytes);
        case_run(&c, HOST_PORTABLE, NULL, out);
        for (size_t i = 0; i < c.d.bytes; i++)
            hash = (hash ^ out[i]) * 0x100000001b3ull;
        free(out);
        case_free(&c);
    }
    char why[64];
    snprintf(why, sizeof why, "got %016llx", (unsigned long long)hash);
    expect(hash == 0xb021b06700ab1d07ull, "same bits as on other machines", why);
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    int cases = argc > 2 ? atoi(argv[2]) : argc > 1 ? 1 : 250;
    for (int level = HOST_PORTABLE; level >= 0; level = level_next(level)) {
        test_rules(level);
        test_orders(level, seed);
        if (level < HOST_AMX)
            test_widen((HostLevel)level);
    }
    test_digest();
    test_runs(seed, cases < 20 ? cases : 20);
    Pool *pool = pool_make(3);
    int bad = 0;
    for (int i = 0; i < cases; i++)
        bad += !case_check(seed + (uint64_t)i * 1000003, pool);
    pool_free(pool);
    char name[96], why[64];
    snprintf(name, sizeof name, "levels agree, seed %llu, %d cases", (unsigned long long)seed,
             cases);
    snprintf(why, sizeof why, "%d cases differ", bad);
    expect(bad == 0, name, why);
    snprintf(name, sizeof name, "operands in blocks and sums elsewhere, seed %llu, %d cases", (unsigned long long)seed, cases);
    expect(operands_agree(seed, cases), name, "they differ");
    return failures != 0;
}
