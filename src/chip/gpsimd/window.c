// SPDX-License-Identifier: Apache-2.0
// window.c — reduce_window.
//
// Lanes are neighbouring outputs of one row. For each element of the window, in row-major order,
// the lanes read their operand elements (the initial value where the window lies in padding) and
// fold them in. A window that reaches over a whole axis with one-sided padding is a running sum: it
// is computed as one (gp_window_scan.c).
#include "chip/gpsimd/window.h"

#include "chip/gpsimd/reduce.h"
#include "chip/gpsimd/scan.h"

static const int64_t *ints_or(const Kern *k, HloAttrKey key, size_t n, const int64_t *dflt) {
    const HloAttr *a = kern_attr(k, key);
    return a ? gp_ints(k, key, n) : dflt;
}

bool windows_init(Windows *w, const Kern *k, const KTensor *in, const KTensor *out) {
    int64_t ones[OTRN_MAX_RANK];
    static const int64_t zeros[2 * OTRN_MAX_RANK];
    for (int i = 0; i < OTRN_MAX_RANK; i++)
        ones[i] = 1;
    size_t rank = in->rank;
    const int64_t *size = gp_ints(k, AK_WINDOW_DIMENSIONS, rank);
    const int64_t *step = ints_or(k, AK_WINDOW_STRIDES, rank, ones);
    const int64_t *base = ints_or(k, AK_BASE_DILATIONS, rank, ones);
    const int64_t *gap = ints_or(k, AK_WINDOW_DILATIONS, rank, ones);
    const int64_t *pad = ints_or(k, AK_PADDING, 2 * rank, zeros);
    if (!size || !step || !base || !gap || !pad || out->rank != in->rank)
        return false;
    *w = (Windows){.rank = (int)rank, .count = 1};
    for (size_t d = 0; d < rank; d++) {
        WindowAxis *a = &w->axis[d];
        *a = (WindowAxis){in->dims[d], out->dims[d], size[d], step[d], gap[d], base[d], pad[2 * d]};
        int64_t high = pad[2 * d + 1], whole, span;
        if (a->size < 1 || a->step < 1 || a->gap < 1 || a->base < 1)
            return false;
        if (__builtin_mul_overflow(a->in ? a->in - 1 : 0, a->base, &whole) ||
            __builtin_add_overflow(whole, a->in ? 1 : 0, &whole) ||
            __builtin_add_overflow(whole, a->low, &whole) ||
            __builtin_add_overflow(whole, high, &whole) ||
            __builtin_mul_overflow(a->size - 1, a->gap, &span) ||
            __builtin_add_overflow(span, 1, &span) ||
            __builtin_mul_overflow(w->count, a->size, &w->count))
            return false;
        int64_t fits = whole < span ? 0 : (whole - span) / a->step + 1;
        if (a->out != fits)
            return false;
    }
    return true;
}

bool gp_reduce_window_check(const Kern *k) {
    Windows w;
    uint32_t n = k->nout;
    if (k->nregions != 1 || n < 1 || n > UINT16_MAX / 2)
        return false;
    const KProg *p = &k->regions[0];
    if (k->nin != 2 * n + p->ncaptures || p->ninputs != 2 * n || p->nouts != n ||
        !windows_init(&w, k, &k->in[0], &k->out[0]))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        Lane lane;
        int type = p->dtypes[i];
        if (!gp_same_dims(&k->in[i], &k->in[0]) || !gp_same_dims(&k->out[i], &k->out[0]) ||
            k->in[n + i].elems != 1 || k->in[n + i].dtype != k->in[i].dtype)
            return false;
        if (p->dtypes[n + i] != type || p->dtypes[p->outs[i]] != type || k->out[i].dtype != type ||
            !lane_find(&lane, &gp_level_portable, HLO_CONVERT, type, &k->in[i].dtype, 1, NULL))
            return false;
    }
    return true;
}

// --- lanes along a row -------------------------------------------------------------------------

typedef struct WindowJob {
    const GpCall *c;
    Windows w;
    int64_t strides[OTRN_MAX_RANK]; // of the operand
    size_t slots, slot_bytes;
    char *slot0;
    int64_t rows; // outputs without the last axis
} WindowJob;

// Lanes [o, o + m) of the last axis whose position is an element: copies them over the initial
// values.
static void read_lanes(const WindowAxis *a, char *dst, const char *row, size_t bytes, int64_t o,
                       int64_t w, size_t m) {
    int64_t first = 0, last = (int64_t)m, at = window_position(a, o, w);
    if (a->base == 1) { // positions at + l step in [0, in): one strided piece
        if (at < 0)
            first = (-at + a->step - 1) / a->step;
        int64_t room = a->in - 1 - at;
        last = room < 0 ? 0 : room / a->step + 1 < last ? room / a->step + 1 : last;
        if (first >= last)
            return;
        Copy c;
        copy_init(&c, bytes, 1, &(CopyAxis){last - first, 1, a->step});
        copy_serial(&c, dst + first * (int64_t)bytes,
                    row + (at + first * a->step) * (int64_t)bytes);
        return;
    }
    for (int64_t l = 0; l < last; l++, at += a->step) {
        int64_t i = window_index(a, at);
        if (i >= 0)
            memcpy(dst + l * (int64_t)bytes, row + i * (int64_t)bytes, bytes);
    }
}

static const void *as_body(const WindowJob *j, LaneSlot *s, size_t i, size_t m) {
    const Kern *k = j->c->k;
    if (k->in[i].dtype == k->regions[0].dtypes[i])
        return s->raw[i];
    lane_run(&s->convert[i], s->wide[i], (const void *[1]){s->raw[i]}, m);
    return s->wide[i];
}

static void window_fold(const WindowJob *j, LaneSlot *s, size_t m, bool first) {
    const Kern *k = j->c->k;
    size_t n = k->nout;
    for (size_t i = 0; i < n; i++) {
        const void *x = as_body(j, s, i, m);
        if (first) // acc = initial value
            memcpy(s->acc[i], x, m * dtype_bytes(k->regions[0].dtypes[i]));
        s->prog.at[i] = s->acc[i];
        s->prog.at[n + i] = (void *)x;
    }
    if (first)
        return;
    prog_run(&s->prog, m);
    for (size_t i = 0; i < n; i++)
        memmove(s->acc[i], prog_out(&s->prog, (int)i), m * dtype_bytes(k->regions[0].dtypes[i]));
}

static void load_init(const WindowJob *j, LaneSlot *s, size_t m) {
    const Kern *k = j->c->k;
    for (size_t i = 0; i < k->nout; i++)
        gp_fill(s->raw[i], j->c->in[k->nout + i], dtype_bytes(k->in[i].dtype), m);
}

// m outputs of one row, from o on; `at` are the row's output coordinates.
static void window_block(const WindowJob *j, LaneSlot *s, const int64_t *at, int64_t o, size_t m,
                         int64_t out_at) {
    const Kern *k = j->c->k;
    const Windows *w = &j->w;
    int last = w->rank - 1;
    int64_t win[OTRN_MAX_RANK] = {0};
    load_init(j, s, m);
    window_fold(j, s, m, true);
    for (int64_t e = 0; e < w->count; e++) {
        int64_t row = 0;
        for (int d = 0; d < last && row >= 0; d++) {
            int64_t i = window_index(&w->axis[d], window_position(&w->axis[d], at[d], win[d]));
            row = i < 0 ? -1 : row + i * j->strides[d];
        }
        load_init(j, s, m);
        for (size_t i = 0; i < k->nout && row >= 0; i++) {
            size_t bytes = dtype_bytes(k->in[i].dtype);
            read_lanes(&w->axis[last], s->raw[i], (const char *)j->c->in[i] + row * (int64_t)bytes,
                       bytes, o, win[last], m);
        }
        window_fold(j, s, m, false);
        for (int d = last; d >= 0 && ++win[d] == w->axis[d].size; d--)
            win[d] = 0;
    }
    for (size_t i = 0; i < k->nout; i++) {
        size_t bytes = dtype_bytes(k->out[i].dtype);
        memcpy((char *)j->c->out[i] + out_at * (int64_t)bytes, s->acc[i], m * bytes);
    }
}

static void window_slot(void *arg, size_t begin, size_t end) {
    const WindowJob *j = arg;
    int last = j->w.rank - 1;
    int64_t width = j->w.axis[last].out;
    for (size_t slot = begin; slot < end; slot++) {
        LaneSlot s;
        lane_slot_open(&s, j->c, j->slot0 + slot * j->slot_bytes, 1);
        int64_t from = j->rows * (int64_t)slot / (int64_t)j->slots;
        int64_t to = j->rows * (int64_t)(slot + 1) / (int64_t)j->slots;
        for (int64_t row = from; row < to; row++) {
            int64_t at[OTRN_MAX_RANK], rest = row;
            for (int d = last - 1; d >= 0; d--) {
                at[d] = rest % j->w.axis[d].out;
                rest /= j->w.axis[d].out;
            }
            for (int64_t o = 0; o < width; o += LANE_BLOCK)
                window_block(j, &s, at, o,
                             (size_t)(width - o < LANE_BLOCK ? width - o : LANE_BLOCK),
                             row * width + o);
        }
    }
}

size_t gp_reduce_window_scratch(const Kern *k, int threads) {
    return prog_shared_bytes(&k->regions[0]) + (size_t)threads * lane_slot_bytes(k, 1);
}

// A scalar has no axes: give it one of size one.
static void windows_scalar(Windows *w) {
    if (w->rank)
        return;
    w->rank = 1;
    w->axis[0] = (WindowAxis){1, 1, 1, 1, 1, 1, 0};
}

otrn_status gp_reduce_window_run(const GpCall *c) {
    const Kern *k = c->k;
    WindowJob j = {.c = c, .slot_bytes = lane_slot_bytes(k, 1)};
    if (!k->out[0].elems)
        return OTRN_OK;
    windows_init(&j.w, k, &k->in[0], &k->out[0]);
    if (scan_try(c, &j.w))
        return OTRN_OK;
    gp_strides(&k->in[0], j.strides);
    windows_scalar(&j.w);
    j.slot0 = prog_resolve(&k->regions[0], gp_level(c->level), c->scratch);
    j.rows = k->out[0].elems / j.w.axis[j.w.rank - 1].out;
    j.slots = gp_slots(c, (size_t)j.rows);
    pool_run(c->pool, j.slots, 1, window_slot, &j);
    return OTRN_OK;
}
