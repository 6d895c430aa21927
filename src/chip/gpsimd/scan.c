// SPDX-License-Identifier: Apache-2.0
// scan.c — cumulative sums, products and extremes.
//
// JAX writes them as a reduce_window whose window is a whole axis, padded on one side. Done as
// written that is quadratic; done in order it is one step per element. It needs an initial value
// that changes nothing, because padding would bring it in again and again. Each result is rounded
// before it is carried on.
#include <math.h>

#include "chip/gpsimd/scan.h"

#define SCAN_COLS 256

static bool is_identity(RedOp op, int dtype, const void *p) {
    const DtypeRow *row = dtype_row(dtype);
    if (dtype_is_float(dtype)) {
        double v = dtype_to_f64(dtype, p);
        bool ends = row->flavour == FF_IEEE;
        return op == RED_ADD   ? v == 0
               : op == RED_MUL ? v == 1
               : op == RED_MAX ? ends && v == -INFINITY
               : op == RED_MIN ? ends && v == INFINITY
                               : false;
    }
    if (row->cls == DC_BOOL)
        return (*(const uint8_t *)p != 0) == (op == RED_MUL || op == RED_MIN || op == RED_AND);
    if (!dtype_is_int(dtype) || row->bits < 8)
        return false;
    int64_t v = dtype_to_i64(dtype, p);
    uint64_t ones = ~(uint64_t)0 >> (64 - row->bits);
    bool sign = row->cls == DC_SINT;
    int64_t most = (int64_t)(sign ? ones >> 1 : ones), least = sign ? -(int64_t)(ones >> 1) - 1 : 0;
    switch (op) {
    case RED_ADD:
    case RED_OR:
    case RED_XOR: return v == 0;
    case RED_MUL: return v == 1;
    case RED_MAX: return v == least;
    case RED_MIN: return v == most;
    default: return sign ? v == -1 : v == most;
    }
}

typedef struct ScanJob {
    const GpCall *c;
    RowsFn *rows;
    ScanFn *scan; // neighbours are scanned: no rows; NULL: the type has none
    ConvFn *widen, *narrow;
    QuietFn *quiet, *quiet_in_place; // of the compute type, of what `scan` writes
    int64_t n, inner, outer, blocks;
    bool back; // from the last element to the first
    size_t bytes, acc_bytes;
} ScanJob;

// Which axis is scanned: exactly one is, all others have windows of one element.
static int scan_axis(const Windows *w, bool *back) {
    int axis = -1;
    for (int d = 0; d < w->rank; d++) {
        const WindowAxis *a = &w->axis[d];
        if (a->step != 1 || a->gap != 1 || a->base != 1 || a->out != a->in)
            return -1;
        if (a->size == 1 && a->low == 0)
            continue;
        if (axis >= 0 || a->size != a->in || (a->low != a->in - 1 && a->low != 0))
            return -1;
        axis = d;
        *back = a->low == 0;
    }
    return axis;
}

// Columns [col, col + cols) of one outer index: row after row joins the accumulator.
static void scan_columns(const ScanJob *j, int64_t base, size_t cols) {
    _Alignas(64) char acc[SCAN_COLS * 8];
    _Alignas(64) float wide[SCAN_COLS];
    for (int64_t i = 0; i < j->n; i++) {
        int64_t at = (base + (j->back ? j->n - 1 - i : i) * j->inner) * (int64_t)j->bytes;
        const char *x = (const char *)j->c->in[0] + at;
        char *y = (char *)j->c->out[0] + at;
        if (j->widen) {
            j->widen(wide, x, cols);
            x = (const char *)wide;
        }
        if (i == 0)
            memcpy(acc, x, cols * j->acc_bytes);
        else
            j->rows(acc, x, cols, 1, cols);
        if (j->quiet)
            j->quiet(acc, cols);
        if (j->narrow) {
            j->narrow(y, acc, cols);
            j->widen(acc, y, cols);
        } else {
            memcpy(y, acc, cols * j->acc_bytes);
        }
    }
}

static void scan_tasks(void *arg, size_t begin, size_t end) {
    const ScanJob *j = arg;
    for (size_t t = begin; t < end; t++) {
        int64_t outer = (int64_t)t / j->blocks, col = (int64_t)t % j->blocks * SCAN_COLS;
        int64_t left = j->inner - col;
        if (j->inner == 1 && j->scan) {
            size_t at = (size_t)(outer * j->n + (j->back ? j->n - 1 : 0)) * j->bytes;
            j->scan((char *)j->c->out[0] + at, (const char *)j->c->in[0] + at, (size_t)j->n,
                    j->back ? -1 : 1);
            if (j->quiet_in_place)
                j->quiet_in_place((char *)j->c->out[0] + (size_t)(outer * j->n) * j->bytes, (size_t)j->n);
            continue;
        }
        scan_columns(j, outer * j->n * j->inner + col,
                     (size_t)(left < SCAN_COLS ? left : SCAN_COLS));
    }
}

bool scan_try(const GpCall *c, const Windows *w) {
    const Kern *k = c->k;
    const KProg *p = &k->regions[0];
    const GpLevel *level = gp_level(c->level);
    ScanJob j = {.c = c};
    RedOp op;
    int axis = scan_axis(w, &j.back), type = k->in[0].dtype;
    if (axis < 0 || k->nout != 1 || !prog_red_op(p, &op) || p->dtypes[0] != type ||
        !is_identity(op, type, c->in[1]))
        return false;
    j.rows = level->rows[op][lane_class(type)];
    if (!j.rows)
        return false;
    j.widen = level->widen[type];
    if (!j.widen || type == DT_BF16)
        j.scan = level->scan[op][lane_class_direct(type)];
    j.narrow = level->narrow[type];
    j.quiet = level->quiet[lane_class(type)];
    j.quiet_in_place = level->quiet[lane_class_direct(type)];
    j.bytes = dtype_bytes(type);
    j.acc_bytes = lane_class_bytes[lane_class(type)];
    j.n = w->axis[axis].in;
    j.inner = j.outer = 1;
    for (int d = 0; d < w->rank; d++)
        *(d < axis ? &j.outer : &j.inner) *= d == axis ? 1 : w->axis[d].in;
    j.blocks = (j.inner + SCAN_COLS - 1) / SCAN_COLS;
    pool_run(c->pool, (size_t)(j.outer * j.blocks), 1, scan_tasks, &j);
    return true;
}
