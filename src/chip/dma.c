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
// Rows of the two inner axes are the unit of work shared over the pool.
#include "chip/dma.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#define GRAIN_BYTES (64u << 10)  // least work worth a handoff: some microseconds
#define PIECE_BYTES (32u << 10)  // a single long axis is cut into rows of this size
#define STREAM_BYTES (32u << 20) // copies this large leave nothing in the cache worth keeping
#define FETCH_BYTES (4u << 10)   // rows up to this size are fetched one ahead
#define LINE 64u                 // of the host's caches
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
    for (size_t r = 0; r < rows; r++, dst += c->row.d, src += c->row.s) {
        size_t n = r + 1 == rows ? last * c->elem : bytes;
        if (r + 1 < rows && bytes <= FETCH_BYTES) // a short row ends before the hardware looks ahead
            for (size_t b = 0; b < bytes; b += 64)
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

// dst[i][j] = src[j][i]: i is `row`, adjacent in the source, j is `col`, adjacent in the
// destination. Blocks are walked so that lines of the source are used up at once; but when it is
// the destination whose rows fall into one set of the cache (a pitch of whole 2 KiB), so that its
// lines are filled at once.
// Rows of the result that lie whole pages apart fall into one set of the nearest cache, and a line written in parts would be
// lost in between: squares of a line's length are put together aside and written line by line. Returns the columns done.
static size_t squares_transpose(const Copy *c, uint8_t *dst, const uint8_t *src, size_t rows) {
    _Alignas(LINE) uint8_t square[LINE * LINE];
    size_t elem = c->elem, side = LINE / elem, cols = c->col.n / side * side;
    int64_t dp = c->row.d, sp = c->col.s;
    for (size_t i0 = 0; i0 < rows; i0 += side)
        for (size_t j0 = 0; j0 < cols; j0 += side) {
            for (size_t j = 0; j < side; j += BLOCK)
                for (size_t i = 0; i < side; i += BLOCK)
                    c->block(square + i * LINE + j * elem, LINE, src + (int64_t)(j0 + j) * sp + (int64_t)((i0 + i) * elem), sp);
            for (size_t i = 0; i < side; i++)
                memcpy(dst + (int64_t)(i0 + i) * dp + (int64_t)(j0 * elem), square + i * LINE, LINE);
        }
    return cols;
}

static void rows_transpose(const Copy *c, uint8_t *dst, const uint8_t *src, size_t rows) {
    size_t elem = c->elem, full_rows = rows / BLOCK * BLOCK, full_cols = c->col.n / BLOCK * BLOCK, done = 0;
    int64_t dp = c->row.d, sp = c->col.s;
    size_t step = LINE / elem < BLOCK ? BLOCK : LINE / elem;
    if (dp % 2048 == 0 && elem <= 4 && full_rows % step == 0)
        done = squares_transpose(c, dst, src, full_rows);
    if (dp % 2048 == 0 && sp % 2048)
        step = BLOCK;
    for (size_t i0 = 0; i0 < full_rows; i0 += step)
        for (size_t j = done; j < full_cols; j += BLOCK)
            for (size_t i = i0; i < i0 + step && i < full_rows; i += BLOCK)
                c->block(dst + (int64_t)i * dp + (int64_t)(j * elem), dp,
                         src + (int64_t)j * sp + (int64_t)(i * elem), sp);
    for (size_t i = 0; i < full_rows; i++) // columns left over
        elements_copy(dst + (int64_t)i * dp + (int64_t)(full_cols * elem), (int64_t)elem,
                      src + (int64_t)full_cols * sp + (int64_t)(i * elem), sp, c->col.n - full_cols,
                      elem);
    for (size_t i = full_rows; i < rows; i++)
        elements_copy(dst + (int64_t)i * dp, (int64_t)elem, src + (int64_t)(i * elem), sp, c->col.n,
                      elem);
}

// Rows [begin, end) of all outer axes taken together.
void dma_rows(const Copy *c, size_t begin, size_t end) {
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
        else if (c->kind == COPY_TRANSPOSE)
            rows_transpose(c, c->dst + d, c->src + s, rows);
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
    if (c.kind == COPY_TRANSPOSE) // whole lines of the source per task
        c.grain = (c.grain + 63) / 64 * 64;
    return c;
}

static void copy_rows(void *arg, size_t begin, size_t end) { dma_rows(arg, begin, end); }

void dma_copy(Pool *pool, HostLevel level, uint8_t *dst, const int64_t dst_strides_bytes[4],
              const uint8_t *src, const int64_t src_strides_bytes[4], const uint32_t n[4],
              size_t elem_bytes, bool leaves) {
    DmaCopy c = dma_prepare(level, dst, dst_strides_bytes, src, src_strides_bytes, n, elem_bytes, leaves);
    pool_run(pool, c.rows, c.grain, copy_rows, &c);
}
