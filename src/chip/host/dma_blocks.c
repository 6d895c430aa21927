// SPDX-License-Identifier: Apache-2.0
// dma_blocks.c — transfers that lay an operand of products out in blocks (chip.h) instead of rows of SBUF.
//
// A block has 16 columns side by side, a line for each partition; of bf16 two lines for four partitions, whose words
// are those of matmul_bf16.c: partitions 0 (high half) and 2, then 1 and 3. Two forms of transfer:
//
//   columns adjacent in HBM       some partitions at a time, so that whole lines are read and neighbours written
//   partitions adjacent in HBM    squares of 16 words are turned in registers
//
// What is too large to be in the cache still when products read it goes around the caches: lines of blocks are written
// whole, and reading the old ones first was most of the time. Products ask for their operands ahead.
// Only hosts whose kernels take blocks come here; they all have AVX-512.
#include <assert.h>

#include "chip/core/dma.h"
#include "chip/host/matmul.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2")))
#define COLS MM_BLOCK_COLS
#define LINE 64
#define PARTS 8 // that are taken together
#define BLOCK_BYTES(elem) ((elem) == 4 ? MM_BLOCK_FLOATS * 4 : MM_BLOCK_FLOATS * 2)

// --- columns adjacent ------------------------------------------------------------------------------------

static inline __attribute__((always_inline)) TARGET void line_store(uint8_t *dst, __m512i x, bool stream) {
    if (stream)
        _mm512_stream_si512((void *)dst, x);
    else
        _mm512_store_si512(dst, x);
}

static TARGET void lines_f32(const DmaCopy *c, uint8_t *dst, const uint8_t *src, uint32_t parts, uint32_t cols, int64_t ahead) {
    int64_t pitch = c->row.s;
    bool stream = c->stream;
    __mmask16 m = (__mmask16)(cols < COLS ? (1u << cols) - 1 : 0xffff);
    for (uint32_t p = 0; p < parts; p++, src += pitch) {
        line_store(dst + p * LINE, _mm512_maskz_loadu_epi32(m, src), stream);
        _mm_prefetch((const char *)src + ahead, _MM_HINT_T0);
    }
}

// Four partitions at a time.
static TARGET void lines_bf16(const DmaCopy *c, uint8_t *dst, const uint8_t *src, uint32_t parts, uint32_t cols, int64_t ahead) {
    int64_t pitch = c->row.s;
    bool stream = c->stream;
    __mmask16 m = (__mmask16)(cols < COLS ? (1u << cols) - 1 : 0xffff);
    for (uint32_t p = 0; p < parts; p += 4, src += 4 * pitch, dst += 2 * LINE) {
        __m512i r[4];
        for (int i = 0; i < 4; i++) {
            r[i] = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, src + i * pitch));
            _mm_prefetch((const char *)src + i * pitch + ahead, _MM_HINT_T0);
        }
        line_store(dst, _mm512_or_si512(_mm512_slli_epi32(r[0], 16), r[2]), stream);
        line_store(dst + LINE, _mm512_or_si512(_mm512_slli_epi32(r[1], 16), r[3]), stream);
    }
}

static void parts_copy(const DmaCopy *c, uint8_t *dst, const uint8_t *src, size_t item) {
    size_t first = item * PARTS, parts = c->row.n - first < PARTS ? c->row.n - first : PARTS;
    int64_t ahead = first + 2 * PARTS <= c->row.n ? PARTS * c->row.s : 0;
    src += (int64_t)first * c->row.s;
    dst += first * (c->elem == 4 ? LINE : LINE / 2);
    for (size_t col = 0; col < c->col.n; col += COLS, dst += BLOCK_BYTES(c->elem)) {
        uint32_t cols = c->col.n - col < COLS ? (uint32_t)(c->col.n - col) : COLS;
        (c->elem == 4 ? lines_f32 : lines_bf16)(c, dst, src + col * c->elem, (uint32_t)parts, cols, ahead);
    }
}

// --- partitions adjacent -----------------------------------------------------------------------------------

// out[i] word j = in[j] word i: four rounds that interleave at growing distance.
static inline __attribute__((always_inline)) TARGET void square_turn(__m512i r[16]) {
    __m512i t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) { // r[i + j]: words j, j + 4, j + 8, j + 12 of four rows
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int j = 0; j < 4; j++) {
        t[j] = _mm512_shuffle_i32x4(r[j], r[j + 4], 0x88);
        t[j + 4] = _mm512_shuffle_i32x4(r[j], r[j + 4], 0xdd);
        t[j + 8] = _mm512_shuffle_i32x4(r[j + 8], r[j + 12], 0x88);
        t[j + 12] = _mm512_shuffle_i32x4(r[j + 8], r[j + 12], 0xdd);
    }
    for (int j = 0; j < 4; j++) {
        r[j] = _mm512_shuffle_i32x4(t[j], t[j + 8], 0x88);
        r[j + 8] = _mm512_shuffle_i32x4(t[j], t[j + 8], 0xdd);
        r[j + 4] = _mm512_shuffle_i32x4(t[j + 4], t[j + 12], 0x88);
        r[j + 12] = _mm512_shuffle_i32x4(t[j + 4], t[j + 12], 0xdd);
    }
}

// One block: line by line 16 words of it, from as many columns. A line of a column holds 16 partitions of fp32, 32 of bf16.
static TARGET void block_turn(const DmaCopy *c, uint8_t *dst, const uint8_t *src, uint32_t cols, int64_t ahead) {
    const __m512i words = _mm512_broadcast_i32x4(_mm_setr_epi8(4, 5, 0, 1, 6, 7, 2, 3, 12, 13, 8, 9, 14, 15, 10, 11));
    size_t bytes = c->row.n * c->elem; // of a column
    bool stream = c->stream;
    for (size_t at = 0; at < bytes; at += LINE, dst += 16 * LINE) {
        size_t left = bytes - at < LINE ? bytes - at : LINE;
        __mmask32 m = (__mmask32)(left < LINE ? ((uint64_t)1 << left / 2) - 1 : 0xffffffff);
        __m512i r[16];
        for (uint32_t j = 0; j < 16; j++) {
            r[j] = j < cols ? _mm512_maskz_loadu_epi16(m, src + j * c->col.s + at) : _mm512_setzero_si512();
            _mm_prefetch((const char *)src + j * c->col.s + at + ahead, _MM_HINT_T0);
            if (c->elem == 2)
                r[j] = _mm512_shuffle_epi8(r[j], words);
        }
        square_turn(r);
        for (size_t i = 0; i < left / 4; i++)
            line_store(dst + i * LINE, r[i], stream);
    }
}

static void cols_turn(const DmaCopy *c, uint8_t *dst, const uint8_t *src, size_t item, int64_t ahead) {
    size_t col = item * COLS;
    uint32_t cols = c->col.n - col < COLS ? (uint32_t)(c->col.n - col) : COLS;
    block_turn(c, dst + item * BLOCK_BYTES(c->elem), src + (int64_t)col * c->col.s, cols, ahead);
}

// --- transfers ---------------------------------------------------------------------------------------------

static bool turns(const DmaCopy *c) { return c->col.s != (int64_t)c->elem; }

static size_t items_of(const DmaCopy *c) { // of a chunk
    return turns(c) ? (c->col.n + COLS - 1) / COLS : (c->row.n + PARTS - 1) / PARTS;
}

static void chunk_at(const DmaCopy *c, size_t chunk, int64_t *d, int64_t *s) {
    *d = *s = 0;
    for (int a = c->naxes - 1; a >= 0; a--) {
        int64_t i = (int64_t)(chunk % c->axis[a].n);
        chunk /= c->axis[a].n;
        *d += i * c->axis[a].d, *s += i * c->axis[a].s;
    }
}

// The same columns of all chunks, which are neighbours in HBM as a rule, then the next ones.
static void items_turn(const DmaCopy *c, size_t begin, size_t end) {
    size_t each = items_of(c), chunks = c->rows / each;
    int64_t d, s, next_d, next_s;
    chunk_at(c, begin % chunks, &next_d, &next_s);
    for (; begin < end; begin++) {
        size_t item = begin / chunks, next = (begin + 1) / chunks;
        d = next_d, s = next_s;
        chunk_at(c, (begin + 1) % chunks, &next_d, &next_s);
        int64_t ahead = next_s - s + (next != item ? COLS * c->col.s : 0);
        cols_turn(c, c->dst + d, c->src + s, item, begin + 1 < end && (next + 1) * COLS <= c->col.n ? ahead : 0);
    }
}

void dma_blocks_rows(const DmaCopy *c, size_t begin, size_t end) {
    size_t each = items_of(c);
    if (turns(c))
        items_turn(c, begin, end);
    else
        for (; begin < end; begin++) {
            int64_t d, s;
            chunk_at(c, begin / each, &d, &s);
            parts_copy(c, c->dst + d, c->src + s, begin % each);
        }
    if (c->stream)
        _mm_sfence();
}

#define GRAIN_BYTES (64u << 10) // as in dma.c
#define STREAM_LEAST ((size_t)512 << 10) // half of a small L2

DmaCopy dma_blocks(uint8_t *dst, const int64_t d[4], const uint8_t *src, const int64_t s[4], const uint32_t n[4], size_t elem) {
    DmaCopy c = {.dst = dst, .src = src, .elem = elem, .kind = COPY_BLOCKS, .col = {.n = 1}};
    c.row = (DmaAxis){.n = n[0] ? n[0] : 1, .s = s[0]};
    for (int i = 3; i >= 1; i--) {
        size_t count = n[i] ? n[i] : 1;
        if (count == 1)
            continue;
        if (c.col.n == 1) {
            assert(d[i] == (int64_t)elem);
            c.col = (DmaAxis){.n = count, .s = s[i]};
            continue;
        }
        bool goes_on = !c.naxes && d[i] == (int64_t)(c.col.n * elem) && s[i] == (int64_t)c.col.n * c.col.s;
        if (goes_on) {
            c.col.n *= count;
            continue;
        }
        assert(d[i] % (int64_t)(COLS * elem) == 0);
        c.axis[c.naxes++] = (DmaAxis){count, d[i] / (int64_t)(COLS * elem) * BLOCK_BYTES(elem), s[i]};
    }
    c.rows = items_of(&c);
    for (int a = 0; a < c.naxes; a++)
        c.rows *= c.axis[a].n;
    c.stream = (c.rows / items_of(&c)) * c.row.n * c.col.n * elem >= STREAM_LEAST;
    c.grain = GRAIN_BYTES / (turns(&c) ? c.row.n * COLS * elem : PARTS * c.col.n * elem) + 1;
    return c;
}

#else

void dma_blocks_rows(const DmaCopy *c, size_t begin, size_t end) {
    (void)c, (void)begin, (void)end;
    assert(!"x86 only");
}
DmaCopy dma_blocks(uint8_t *dst, const int64_t d[4], const uint8_t *src, const int64_t s[4], const uint32_t n[4], size_t elem) {
    (void)d, (void)s, (void)n, (void)elem;
    assert(!"x86 only");
    return (DmaCopy){.dst = dst, .src = src};
}

#endif
