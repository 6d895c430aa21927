// SPDX-License-Identifier: Apache-2.0
// copy.c — one strided copy under broadcast, transpose, slice, pad, concatenate and reverse.
//
// A copy is a list of axes with a count, a destination stride and a source stride in elements
// (source strides may be zero or negative). Axes of size one are dropped, axes that run on into
// each other are joined, and the two innermost are handed to a kernel that knows four shapes:
//
//   rows     both contiguous            memcpy per row
//   splat    source stands still        fill per row
//   turn     source contiguous across   square blocks through registers
//   any      whatever                   element by element
//
// Work is cut into tiles of about TILE elements of the two inner axes; tiles are spread over the
// pool.
#include "chip/gpsimd/gp.h"

#define TILE 16384
#define TURN 16 // elements across one block of a turned copy

void copy_init(Copy *c, size_t bytes, int rank, const CopyAxis *axes) {
    c->bytes = bytes;
    c->rank = 0;
    for (int i = rank - 1; i >= 0; i--) { // innermost first
        CopyAxis a = axes[i];
        if (a.n == 0) {
            c->axis[0] = (CopyAxis){0, 1, 1};
            c->rank = 1;
            return;
        }
        CopyAxis *last = c->rank ? &c->axis[c->rank - 1] : NULL;
        if (a.n == 1)
            continue;
        if (last && a.dst == last->dst * last->n && a.src == last->src * last->n)
            last->n *= a.n;
        else
            c->axis[c->rank++] = a;
    }
    while (c->rank < 2)
        c->axis[c->rank++] = (CopyAxis){1, 0, 0};
    for (int i = 2; i < c->rank && c->axis[0].src != 1 && c->axis[1].src != 1; i++) {
        if (c->axis[i].src != 1)
            continue;
        CopyAxis across = c->axis[i];
        memmove(&c->axis[2], &c->axis[1], (size_t)(i - 1) * sizeof across);
        c->axis[1] = across;
    }
}

// --- two axes ----------------------------------------------------------------------------------

typedef struct E16 {
    uint64_t lo, hi;
} E16;

#define COPY_2D(BYTES, T)                                                                          \
    static void any_##BYTES(T *dst, const T *src, const CopyAxis *out, const CopyAxis *in,         \
                            int64_t n1, int64_t n0) {                                              \
        for (int64_t i = 0; i < n1; i++) {                                                         \
            T *d = dst + i * out->dst;                                                             \
            const T *s = src + i * out->src;                                                       \
            if (in->dst == 1)                                                                      \
                for (int64_t j = 0; j < n0; j++)                                                   \
                    d[j] = s[j * in->src];                                                         \
            else                                                                                   \
                for (int64_t j = 0; j < n0; j++)                                                   \
                    d[j * in->dst] = s[j * in->src];                                               \
        }                                                                                          \
    }                                                                                              \
    static void turn_##BYTES(T *dst, const T *src, const CopyAxis *out, const CopyAxis *in,        \
                             int64_t n1, int64_t n0) {                                             \
        for (int64_t i0 = 0; i0 < n1; i0 += TURN)                                                  \
            for (int64_t j0 = 0; j0 < n0; j0 += TURN)                                              \
                for (int64_t i = i0; i < n1 && i < i0 + TURN; i++)                                 \
                    for (int64_t j = j0; j < n0 && j < j0 + TURN; j++)                             \
                        dst[i * out->dst + j] = src[j * in->src + i];                              \
    }
COPY_2D(1, uint8_t)
COPY_2D(2, uint16_t)
COPY_2D(8, uint64_t)
COPY_2D(16, E16)
COPY_2D(4, uint32_t)

typedef uint32_t V4 __attribute__((vector_size(16)));

static inline V4 v4_load(const uint32_t *p) {
    V4 v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void turn_4x4(uint32_t *dst, int64_t pitch, const uint32_t *src, int64_t stride) {
    V4 a = v4_load(src), b = v4_load(src + stride);
    V4 c = v4_load(src + 2 * stride), d = v4_load(src + 3 * stride);
    V4 ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5),
       ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    V4 cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5),
       cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    V4 r0 = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5),
       r1 = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
    V4 r2 = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5),
       r3 = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
    memcpy(dst, &r0, sizeof r0);
    memcpy(dst + pitch, &r1, sizeof r1);
    memcpy(dst + 2 * pitch, &r2, sizeof r2);
    memcpy(dst + 3 * pitch, &r3, sizeof r3);
}

// A block of 16x16 passes through a buffer, so that every cache line of either side is touched
// once: with power-of-two strides the lines of a block compete for the same few places in the
// cache.
static void turn_16x16(uint32_t *dst, int64_t pitch, const uint32_t *src, int64_t stride) {
    uint32_t block[TURN * TURN];
    for (int64_t j = 0; j < TURN; j += 4)
        for (int64_t i = 0; i < TURN; i += 4)
            turn_4x4(block + i * TURN + j, TURN, src + j * stride + i, stride);
    for (int64_t i = 0; i < TURN; i++)
        memcpy(dst + i * pitch, block + i * TURN, TURN * sizeof *block);
}

typedef uint16_t V8 __attribute__((vector_size(16)));

// 8x8 of 16-bit elements: neighbours are interleaved three times.
static inline void turn_8x8(uint16_t *dst, int64_t pitch, const uint16_t *src, int64_t stride) {
    V8 a[8], b[8];
    for (int i = 0; i < 8; i++)
        memcpy(&a[i], src + i * stride, sizeof a[i]);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            b[2 * i] = __builtin_shufflevector(a[i], a[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
            b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
        memcpy(a, b, sizeof a);
    }
    for (int i = 0; i < 8; i++)
        memcpy(dst + i * pitch, &a[i], sizeof a[i]);
}

static void turn_32x32(uint16_t *dst, int64_t pitch, const uint16_t *src, int64_t stride) {
    uint16_t block[4 * TURN * TURN];
    for (int64_t j = 0; j < 2 * TURN; j += 8)
        for (int64_t i = 0; i < 2 * TURN; i += 8)
            turn_8x8(block + i * 2 * TURN + j, 2 * TURN, src + j * stride + i, stride);
    for (int64_t i = 0; i < 2 * TURN; i++)
        memcpy(dst + i * pitch, block + i * 2 * TURN, 2 * TURN * sizeof *block);
}

// Whole blocks quickly, the edges element by element.
#define TURN_BLOCKS(name, T, SIDE, BLOCK, EDGE)                                                    \
    static void name(T *dst, const T *src, const CopyAxis *out, const CopyAxis *in, int64_t n1,    \
                     int64_t n0) {                                                                 \
        int64_t full1 = n1 / (SIDE) * (SIDE), full0 = n0 / (SIDE) * (SIDE);                        \
        for (int64_t i = 0; i < full1; i += SIDE)                                                  \
            for (int64_t j = 0; j < full0; j += SIDE)                                              \
                BLOCK(dst + i * out->dst + j, out->dst, src + j * in->src + i, in->src);           \
        if (full0 < n0)                                                                            \
            EDGE(dst + full0, src + full0 * in->src, out, in, full1, n0 - full0);                  \
        if (full1 < n1)                                                                            \
            EDGE(dst + full1 * out->dst, src + full1, out, in, n1 - full1, n0);                    \
    }
TURN_BLOCKS(turn_words, uint32_t, TURN, turn_16x16, turn_4)
TURN_BLOCKS(turn_halves, uint16_t, 2 * TURN, turn_32x32, turn_2)

static void rows_2d(const Copy *c, char *dst, const char *src, int64_t n1, int64_t n0) {
    const CopyAxis *in = &c->axis[0], *out = &c->axis[1];
    int64_t b = (int64_t)c->bytes;
    for (int64_t i = 0; i < n1; i++) {
        char *d = dst + i * out->dst * b;
        const char *s = src + i * out->src * b;
        if (in->src)
            memcpy(d, s, (size_t)(n0 * b));
        else
            gp_fill(d, s, c->bytes, (size_t)n0);
    }
}

static void copy_2d(const Copy *c, char *dst, const char *src, int64_t n1, int64_t n0) {
    const CopyAxis *in = &c->axis[0], *out = &c->axis[1];
    bool row = in->dst == 1 && (in->src == 0 || in->src == 1) && n0 * (int64_t)c->bytes >= 32;
    if (row) {
        rows_2d(c, dst, src, n1, n0);
        return;
    }
    bool turn = in->dst == 1 && out->src == 1 && n1 > 1;
#define CASE(BYTES, T, TURNED)                                                                     \
    case BYTES: (turn ? TURNED : any_##BYTES)((T *)dst, (const T *)src, out, in, n1, n0); break;
    switch (c->bytes) {
        CASE(1, uint8_t, turn_1)
        CASE(2, uint16_t, turn_halves)
        CASE(4, uint32_t, turn_words)
        CASE(8, uint64_t, turn_8)
        CASE(16, E16, turn_16)
    }
#undef CASE
}

// --- tiles -------------------------------------------------------------------------------------

typedef struct CopyJob {
    const Copy *c;
    char *dst;
    const char *src;
    int64_t rows, cols; // of one tile
    int64_t tiles1, tiles0;
} CopyJob;

// Tiles [begin, end), counted innermost first: column tile, row tile, outer axes.
static void copy_tiles(void *arg, size_t begin, size_t end) {
    const CopyJob *j = arg;
    const Copy *c = j->c;
    int64_t at[OTRN_MAX_RANK] = {0}, b = (int64_t)c->bytes, rest = (int64_t)begin;
    int64_t t0 = rest % j->tiles0, t1 = rest / j->tiles0 % j->tiles1;
    rest = rest / j->tiles0 / j->tiles1;
    int64_t dst = 0, src = 0;
    for (int a = 2; a < c->rank; a++) {
        at[a] = rest % c->axis[a].n;
        rest /= c->axis[a].n;
        dst += at[a] * c->axis[a].dst, src += at[a] * c->axis[a].src;
    }
    for (size_t t = begin; t < end; t++) {
        int64_t i = t1 * j->rows, k = t0 * j->cols;
        int64_t n1 = c->axis[1].n - i, n0 = c->axis[0].n - k;
        int64_t d = dst + i * c->axis[1].dst + k * c->axis[0].dst;
        int64_t s = src + i * c->axis[1].src + k * c->axis[0].src;
        copy_2d(c, j->dst + d * b, j->src + s * b, n1 < j->rows ? n1 : j->rows,
                n0 < j->cols ? n0 : j->cols);
        if (++t0 < j->tiles0)
            continue;
        t0 = 0;
        if (++t1 < j->tiles1)
            continue;
        t1 = 0;
        for (int a = 2; a < c->rank; a++) {
            dst += c->axis[a].dst, src += c->axis[a].src;
            if (++at[a] < c->axis[a].n)
                break;
            at[a] = 0;
            dst -= c->axis[a].n * c->axis[a].dst, src -= c->axis[a].n * c->axis[a].src;
        }
    }
}

static int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

void copy_run(const Copy *c, Pool *pool, void *dst, const void *src) {
    int64_t n0 = c->axis[0].n, n1 = c->rank > 1 ? c->axis[1].n : 1;
    if (!n0)
        return;
    CopyJob j = {.c = c, .dst = dst, .src = src};
    bool turn = c->axis[0].src != 1 && c->axis[1].src == 1;
    j.cols = turn ? 128 : n0 < TILE ? n0 : TILE;
    j.cols = j.cols < n0 ? j.cols : n0;
    j.rows = TILE / j.cols < 1 ? 1 : TILE / j.cols;
    j.rows = turn ? (j.rows + 2 * TURN - 1) / (2 * TURN) * (2 * TURN) : j.rows;
    j.rows = j.rows < n1 ? j.rows : n1;
    j.tiles0 = div_up(n0, j.cols), j.tiles1 = div_up(n1, j.rows);
    size_t tiles = (size_t)(j.tiles0 * j.tiles1);
    for (int a = 2; a < c->rank; a++)
        tiles *= (size_t)c->axis[a].n;
    size_t tile_bytes = (size_t)(j.rows * j.cols) * c->bytes;
    size_t grain = GP_GRAIN_BYTES / (tile_bytes ? tile_bytes : 1);
    pool_run(pool, tiles, grain ? grain : 1, copy_tiles, &j);
}

void copy_serial(const Copy *c, void *dst, const void *src) { copy_run(c, NULL, dst, src); }

// --- whole tensors -----------------------------------------------------------------------------

void copy_bytes(Pool *pool, void *dst, const void *src, size_t bytes) {
    if (dst == src || !bytes)
        return;
    Copy c;
    copy_init(&c, 1, 1, &(CopyAxis){(int64_t)bytes, 1, 1});
    copy_run(&c, pool, dst, src);
}

void fill_run(Pool *pool, void *dst, const void *value, size_t bytes, size_t n) {
    Copy c;
    copy_init(&c, bytes, 1, &(CopyAxis){(int64_t)n, 1, 0});
    copy_run(&c, pool, dst, value);
}
