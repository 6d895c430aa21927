// SPDX-License-Identifier: Apache-2.0
// dma.c — the general strided copy: axes are put in order once, then two inner axes run in a
// kernel.
//
// A pattern is brought to a normal form: axes of one element dropped, destination strides made
// positive, axes sorted by destination stride, neighbours merged when together they are one axis,
// and a short contiguous run taken as a wider element. What is left is one of three:
//
//   runs        the inner axis is contiguous on both sides: memcpy
//   transpose   one axis is contiguous in the destination, another in the source: 8 x 8 blocks
//   elements    anything else: one element at a time
//
// Rows of the two inner axes, or bands of a transpose, are the unit of work shared over the pool.
#include "chip/core/dma.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/rows.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#define GRAIN_BYTES (64u << 10)  // least work worth a handoff: some microseconds
#define PIECE_BYTES (32u << 10)  // a single long axis is cut into rows of this size
#define STREAM_BYTES (32u << 20) // copies this large leave nothing in the cache worth keeping
#define FETCH_BYTES (4u << 10)   // rows up to this size are fetched one ahead
#define LINE 64u                 // of the host's caches
#define TURN_ROWS 128u           // of a band
#define SPREAD_BYTES (1u << 20)  // a result spread over this much is too large to stay there either

typedef DmaAxis Axis;
typedef DmaCopy Copy;

static void axes_sort(Copy *c) { // insertion sort, largest destination stride first
    for (int i = 1; i < c->naxes; i++)
        for (int j = i; j > 0 && c->axis[j].d > c->axis[j - 1].d; j--) {
            Axis t = c->axis[j];
            c->axis[j] = c->axis[j - 1], c->axis[j - 1] = t;
        }
}

static void axis_remove(Copy *c, int i) {
    c->naxes--;
    memmove(&c->axis[i], &c->axis[i + 1], (size_t)(c->naxes - i) * sizeof(Axis));
}

static void axes_merge(Copy *c) {
    for (int i = c->naxes - 1; i > 0; i--) {
        Axis *outer = &c->axis[i - 1], *inner = &c->axis[i];
        if (outer->d != inner->d * (int64_t)inner->n || outer->s != inner->s * (int64_t)inner->n)
            continue;
        *outer = (Axis){outer->n * inner->n, inner->d, inner->s};
        axis_remove(c, i);
    }
}

static bool axis_is_run(const Copy *c, const Axis *a) {
    return a->d == (int64_t)c->elem && a->s == (int64_t)c->elem;
}

static void axes_normalise(Copy *c, const int64_t d[4], const int64_t s[4], const uint32_t n[4]) {
    for (int i = 0; i < 4; i++) {
        if (n[i] <= 1)
            continue;
        Axis a = {n[i], d[i], s[i]};
        if (a.d < 0) { // walk it the other way
            c->dst += a.d * (int64_t)(a.n - 1), c->src += a.s * (int64_t)(a.n - 1);
            a.d = -a.d, a.s = -a.s;
        }
        c->axis[c->naxes++] = a;
    }
    axes_sort(c);
    axes_merge(c);
    if (c->naxes < 2 || !axis_is_run(c, &c->axis[c->naxes - 1]))
        return;
    size_t bytes = c->axis[c->naxes - 1].n * c->elem;
    if (bytes <= 16 && !(bytes & (bytes - 1)))
        c->elem = bytes, c->naxes--;
}

static Axis axis_take(Copy *c, int i) {
    if (i < 0)
        return (Axis){1, 0, 0};
    Axis a = c->axis[i];
    axis_remove(c, i);
    return a;
}

// A single axis is cut into rows so that threads can share it.
static void col_cut(Copy *c) {
    size_t piece = PIECE_BYTES / c->elem, n = c->col.n;
    if (c->row.n != 1 || n <= 2 * piece)
        return;
    c->row = (Axis){(n + piece - 1) / piece, c->col.d * (int64_t)piece, c->col.s * (int64_t)piece};
    c->col.n = piece;
    c->col_last = n - (c->row.n - 1) * piece;
}

static void copy_plan(Copy *c, HostLevel level) {
    int from_src = -1; // axis contiguous in the source
    for (int i = 0; i < c->naxes; i++)
        if (c->axis[i].s == (int64_t)c->elem)
            from_src = i;
    int inner = c->naxes - 1;
    bool dst_contiguous = inner >= 0 && c->axis[inner].d == (int64_t)c->elem;
    c->kind = inner >= 0 && axis_is_run(c, &c->axis[inner]) ? COPY_RUNS
              : dst_contiguous && from_src >= 0             ? COPY_TRANSPOSE
                                                            : COPY_ELEMENTS;
    c->col = axis_take(c, inner);
    if (c->kind == COPY_TRANSPOSE) {
        c->row = axis_take(c, from_src);
        c->block = block_find(level, c->elem);
    } else {
        c->row = axis_take(c, c->naxes - 1);
    }
    c->col_last = c->col.n;
    if (c->naxes == 0 && c->kind != COPY_TRANSPOSE)
        col_cut(c);
}

// Around the caches: whole lines are written without being read first.
static void run_stream(uint8_t *dst, const uint8_t *src, size_t n) {
#if defined(__x86_64__)
    size_t head = -(uintptr_t)dst & 63;
    if (n >= 256) {
        memcpy(dst, src, head);
        dst += head, src += head, n -= head;
        for (; n >= 64; n -= 64, dst += 64, src += 64)
            for (int i = 0; i < 4; i++)
                _mm_stream_si128((__m128i *)dst + i, _mm_loadu_si128((const __m128i *)src + i));
    }
#endif
    memcpy(dst, src, n);
}

static void rows_run(const Copy *c, uint8_t *dst, const uint8_t *src, size_t rows, size_t last) {
    size_t bytes = c->col.n * c->elem;
    if (bytes <= ROWS_SHORT && !c->stream && last == c->col.n) {
        rows_copy(dst, c->row.d, src, c->row.s, rows, bytes);
        return;
    }
    for (size_t r = 0; r < rows; r++, dst += c->row.d, src += c->row.s) {
        size_t n = r + 1 == rows ? last * c->elem : bytes;
        if (r + 1 < rows && bytes <= FETCH_BYTES) // a short row ends before the hardware looks ahead
            for (size_t b = 0; b < bytes; b += LINE)
                __builtin_prefetch(src + c->row.s + b);
        if (c->stream)
            run_stream(dst, src, n);
        else
            memcpy(dst, src, n);
    }
#if defined(__x86_64__)
    if (c->stream)
        _mm_sfence();
#endif
}

// n elements of a constant size, strided on both sides.
#define ELEMENTS(bytes)                                                                            \
    case bytes:                                                                                    \
        for (size_t i = 0; i < n; i++, dst += d, src += s)                                         \
            memcpy(dst, src, bytes);                                                               \
        return

static void elements_copy(uint8_t *dst, int64_t d, const uint8_t *src, int64_t s, size_t n,
                          size_t elem) {
    switch (elem) {
        ELEMENTS(1);
        ELEMENTS(2);
        ELEMENTS(4);
        ELEMENTS(8);
        ELEMENTS(16);
    }
    assert(!"element size");
}

static void rows_elements(const Copy *c, uint8_t *dst, const uint8_t *src, size_t rows,
                          size_t last) {
    for (size_t r = 0; r < rows; r++, dst += c->row.d, src += c->row.s)
        elements_copy(dst, c->col.d, src, c->col.s, r + 1 == rows ? last : c->col.n, c->elem);
}

// --- transposes --------------------------------------------------------------------------------------------
// dst[i][j] = src[j][i]: i is `row`, adjacent in the source, j is `col`, adjacent in the destination. Work is cut into bands of
// a line's length of columns and TURN_ROWS rows:
//
//              j: one line of each row of dst
//   i  ┌──────────────────┐     source: as many rows, a few adjacent lines of each
//      │   blocks of 8    │     Each line on both sides is used up in one band, and while a band is copied the lines
//      └──────────────────┘     of the next one are fetched: in no direction do they follow each other closely enough for
//                               the host to see them coming.
//
// Bands go along the rows of the source, which then comes as it lies in memory, unless their lines of the destination are
// not whole lines: then along its rows, so that a line's two halves are written soon after each other.

static size_t turn_cols(const Copy *c) { return LINE / c->elem < BLOCK ? BLOCK : LINE / c->elem; }

static void turn_plan(Copy *c) {
    uint64_t off_line = (uintptr_t)c->dst | (uint64_t)c->row.d;
    size_t outer = 1;
    for (int a = 0; a < c->naxes; a++)
        off_line |= (uint64_t)c->axis[a].d, outer *= c->axis[a].n;
    c->along_source = off_line % LINE == 0;
    c->col_bands = (c->col.n + turn_cols(c) - 1) / turn_cols(c);
    c->row_bands = outer * ((c->row.n + TURN_ROWS - 1) / TURN_ROWS);
    c->rows = c->col_bands * c->row_bands;
    c->grain = GRAIN_BYTES / (TURN_ROWS * turn_cols(c) * c->elem) + 1;
}

typedef struct Band {
    uint8_t *dst;
    const uint8_t *src;
    size_t rows, cols;
} Band;

static Band band_at(const Copy *c, size_t number) {
    size_t col = c->along_source ? number / c->row_bands : number % c->col_bands;
    size_t row = c->along_source ? number % c->row_bands : number / c->col_bands;
    size_t parts = (c->row.n + TURN_ROWS - 1) / TURN_ROWS, i = row % parts * TURN_ROWS, j = col * turn_cols(c);
    size_t outer = row / parts;
    Band b = {c->dst + (int64_t)i * c->row.d + (int64_t)j * c->col.d, c->src + (int64_t)i * c->row.s + (int64_t)j * c->col.s,
              c->row.n - i < TURN_ROWS ? c->row.n - i : TURN_ROWS, c->col.n - j < turn_cols(c) ? c->col.n - j : turn_cols(c)};
    for (int a = c->naxes - 1; a >= 0; a--) {
        int64_t at = (int64_t)(outer % c->axis[a].n);
        outer /= c->axis[a].n;
        b.dst += at * c->axis[a].d, b.src += at * c->axis[a].s;
    }
    return b;
}

// Lines that rows [i, i + BLOCK) of a band need, beside the copy of such rows of another. Those of the source have been
// fetched when they begin within a line.
static inline void band_fetch(const Copy *c, const Band *b, size_t i) {
    if (i >= b->rows)
        return;
    size_t rows = b->rows - i < BLOCK ? b->rows - i : BLOCK, at = i * c->elem;
    for (size_t k = i; k < i + rows; k++)
        __builtin_prefetch(b->dst + (int64_t)k * c->row.d, 1);
    for (size_t line = (at + LINE - 1) / LINE * LINE; line < at + BLOCK * c->elem; line += LINE)
        for (size_t j = 0; j < b->cols; j++)
            __builtin_prefetch(b->src + (int64_t)j * c->col.s + (int64_t)line);
}

static void band_copy(const Copy *c, const Band *b, const Band *next) {
    size_t elem = c->elem, rows = b->rows / BLOCK * BLOCK, cols = b->cols / BLOCK * BLOCK;
    int64_t dp = c->row.d, sp = c->col.s;
    for (size_t i = 0; i < rows; i += BLOCK) {
        band_fetch(c, next, i);
        for (size_t j = 0; j < cols; j += BLOCK)
            c->block(b->dst + (int64_t)i * dp + (int64_t)(j * elem), dp, b->src + (int64_t)j * sp + (int64_t)(i * elem), sp);
    }
    for (size_t i = cols < b->cols ? 0 : rows; i < b->rows; i++) { // what is left over
        size_t from = i < rows ? cols : 0;
        elements_copy(b->dst + (int64_t)i * dp + (int64_t)(from * elem), (int64_t)elem, b->src + (int64_t)from * sp + (int64_t)(i * elem),
                      sp, b->cols - from, elem);
    }
}

static void bands_transpose(const Copy *c, size_t begin, size_t end) {
    Band b = band_at(c, begin);
    for (; begin < end; begin++) {
        Band next = begin + 1 < end ? band_at(c, begin + 1) : (Band){0};
        band_copy(c, &b, &next);
        b = next;
    }
}

// Rows [begin, end) of all outer axes taken together, or bands.
void dma_rows(const Copy *c, size_t begin, size_t end) {
    if (c->kind == COPY_TRANSPOSE) {
        bands_transpose(c, begin, end);
        return;
    }
    if (c->kind == COPY_BLOCKS) {
        dma_blocks_rows(c, begin, end);
        return;
    }
    while (begin < end) {
        size_t outer = begin / c->row.n, r0 = begin % c->row.n;
        size_t rows = end - begin < c->row.n - r0 ? end - begin : c->row.n - r0;
        size_t last = r0 + rows == c->row.n ? c->col_last : c->col.n;
        int64_t d = (int64_t)r0 * c->row.d, s = (int64_t)r0 * c->row.s;
        for (int a = c->naxes - 1; a >= 0; a--) {
            int64_t i = (int64_t)(outer % c->axis[a].n);
            outer /= c->axis[a].n;
            d += i * c->axis[a].d, s += i * c->axis[a].s;
        }
        if (c->kind == COPY_RUNS)
            rows_run(c, c->dst + d, c->src + s, rows, last);
        else
            rows_elements(c, c->dst + d, c->src + s, rows, last);
        begin += rows;
    }
}

DmaCopy dma_prepare(HostLevel level, uint8_t *dst, const int64_t dst_strides_bytes[4], const uint8_t *src,
                    const int64_t src_strides_bytes[4], const uint32_t n[4], size_t elem_bytes, bool leaves) {
    Copy c = {.dst = dst, .src = src, .elem = elem_bytes};
    axes_normalise(&c, dst_strides_bytes, src_strides_bytes, n);
    copy_plan(&c, level);
    size_t row_bytes = c.col.n * c.elem;
    c.rows = c.row.n;
    for (int a = 0; a < c.naxes; a++)
        c.rows *= c.axis[a].n;
    c.stream = c.rows * row_bytes >= STREAM_BYTES || (leaves && c.row.n * (size_t)c.row.d >= SPREAD_BYTES);
    c.grain = GRAIN_BYTES / row_bytes + 1;
    if (c.kind == COPY_TRANSPOSE)
        turn_plan(&c);
    return c;
}

static void copy_rows(void *arg, size_t begin, size_t end) { dma_rows(arg, begin, end); }

void dma_copy(Pool *pool, HostLevel level, uint8_t *dst, const int64_t dst_strides_bytes[4],
              const uint8_t *src, const int64_t src_strides_bytes[4], const uint32_t n[4],
              size_t elem_bytes, bool leaves) {
    DmaCopy c = dma_prepare(level, dst, dst_strides_bytes, src, src_strides_bytes, n, elem_bytes, leaves);
    pool_run(pool, c.rows, c.grain, copy_rows, &c);
}
