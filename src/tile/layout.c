// SPDX-License-Identifier: Apache-2.0
// layout.c — layouts walked, matrices cut into transfers.
#include "tile/layout.h"

#include <assert.h>

#define BOX_AXES 3 // of a transfer, beside the partitions

Layout layout_make(void) { return (Layout){.at = {{1, 0}}, .rank = 1, .size = 1}; }

void layout_add(Layout *v, int64_t n, int64_t stride) {
    ViewAxis *outer = &v->at[v->rank - 1];
    assert(n >= 0);
    if (n == 1)
        return;
    if (v->rank == 1 && outer->n == 1)
        *outer = (ViewAxis){n, stride};
    else if (outer->stride == stride * n)
        *outer = (ViewAxis){outer->n * n, stride};
    else
        v->at[v->rank++] = (ViewAxis){n, stride};
    assert(v->rank <= OTRN_MAX_RANK);
    v->size *= n;
}

void layout_add_nest(Layout *v, const Nest *axes, bool dst) {
    for (int i = 0; i < axes->rank; i++)
        layout_add(v, axes->axis[i].n, dst ? axes->axis[i].dst : axes->axis[i].src);
}

Layout layout_of(const Nest *axes, bool dst) {
    Layout v = layout_make();
    layout_add_nest(&v, axes, dst);
    return v;
}

int64_t layout_inner(const Layout *v, int from) {
    int64_t n = 1;
    for (int i = from; i < v->rank; i++)
        n *= v->at[i].n;
    return n;
}

// Offset of element i, and how many from there on have the last axis's stride.
static int64_t layout_run(const Layout *v, int64_t i, int64_t *run) {
    int64_t off = 0;
    *run = layout_last(v)->n - i % layout_last(v)->n;
    for (int d = v->rank; d-- > 0; i /= v->at[d].n)
        off += i % v->at[d].n * v->at[d].stride;
    return off;
}

int64_t layout_even(const Layout *v, int64_t most, int64_t least) {
    int64_t whole = 1;
    for (int i = v->rank; i-- > 0 && whole * v->at[i].n <= most;)
        whole *= v->at[i].n;
    int64_t n = whole ? most / whole * whole : most;
    return n >= least ? n : most;
}

// How many whole tiles from row k on, before `end`, lie a step apart from each other.
static int64_t even_tiles(const Layout *v, int64_t tile, int64_t k, int64_t end, int64_t *step) {
    int64_t n = 1;
    for (; k + (n + 1) * tile <= end; n++)
        for (int64_t q = 0, run, other; q < tile; q += run) {
            int64_t apart = -layout_run(v, k + q, &run);
            apart += layout_run(v, k + n * tile + q, &other);
            run = min64(run, tile - q), other = min64(other, tile - q);
            if (n == 1 && q == 0)
                *step = apart;
            if (run != other || apart != n * *step)
                return n;
        }
    return n;
}

double matrix_joined(const Matrix *m, int64_t tile, int64_t rows, int64_t cols) {
    int64_t groups = 0, step, tiles = ceil_div(rows, tile);
    for (int64_t k = 0; k < rows; groups++)
        k += even_tiles(&m->rows, tile, k, rows, &step) * tile;
    int first = 0; // axis of the first box
    while (layout_inner(&m->cols, first + 1) > cols)
        first++;
    return m->cols.rank - first < BOX_AXES && tiles && 2 * groups <= tiles ? (double)groups / (double)tiles : 1;
}

// --- transfers ---------------------------------------------------------------------------------------

typedef struct Fill { // rows in hand, for all columns
    const Layout *cols;
    int dtype, near;
    uint64_t hbm;
    Mem sbuf;
    int64_t run, stride;        // on the partitions
    int64_t tiles, step, pitch; // that come together
    OnTransfer *on;
    void *arg;
} Fill;

// `n` of an axis of the columns and all of those behind it, from element `src` of the tensor and `dst` of a tile on.
static void fill_box(const Fill *f, int axis, int64_t n, int64_t src, int64_t dst) {
    Nest b = {.src = src, .dst = dst};
    int64_t at[OTRN_MAX_RANK] = {0}, size = (int64_t)dtype_bytes(f->dtype), near = (int64_t)dtype_bytes(f->near);
    if (f->tiles > 1)
        b.axis[b.rank++] = (Axis){f->tiles, f->step, f->pitch};
    for (int i = axis; i < f->cols->rank; i++)
        b.axis[b.rank++] = (Axis){i == axis ? n : f->cols->at[i].n, f->cols->at[i].stride, layout_inner(f->cols, i + 1)};
    int outer = b.rank > BOX_AXES ? b.rank - BOX_AXES : 0;
    do {
        int64_t from, to;
        nest_at(&b, outer, at, &from, &to);
        View hbm = VIEW(mem_hbm(f->hbm + (uint64_t)(from * size)), f->dtype, {f->run, f->stride}), sbuf = VIEW(mem_off(f->sbuf, to * near), f->near, {f->run});
        for (int i = outer; i < b.rank; i++)
            hbm.at[hbm.rank++] = (ViewAxis){b.axis[i].n, b.axis[i].src}, sbuf.at[sbuf.rank++] = (ViewAxis){b.axis[i].n, b.axis[i].dst};
        f->on(f->arg, hbm, sbuf);
    } while (nest_next(&b, outer, at));
}

// Columns [from, from + len) of the axes from `axis` on, in boxes; `src` and `dst` are those of column 0.
static void fill_boxes(const Fill *f, int axis, int64_t from, int64_t len, int64_t src, int64_t dst) {
    int64_t inner = layout_inner(f->cols, axis + 1);
    assert(axis < f->cols->rank);
    while (len > 0) {
        int64_t head = from % inner, whole = head ? 0 : len / inner, here = src + from / inner * f->cols->at[axis].stride;
        int64_t part = whole ? whole * inner : min64(len, inner - head);
        if (whole)
            fill_box(f, axis, whole, here, dst);
        else
            fill_boxes(f, axis + 1, head, part, here, dst);
        from += part, dst += part, len -= part;
    }
}

void matrix_transfers(const Matrix *m, Piece p, int dtype, uint64_t hbm, int near, Mem sbuf, OnTransfer *on, void *arg) {
    Fill f = {.cols = &m->cols, .dtype = dtype, .near = near, .stride = layout_last(&m->rows)->stride, .pitch = p.pitch, .on = on, .arg = arg};
    int64_t size = (int64_t)dtype_bytes(dtype);
    assert(p.tile <= PARTITIONS);
    assert(p.row + p.rows <= m->rows.size);
    assert(p.col + p.cols <= m->cols.size);
    for (int64_t r = 0; r < p.rows; r += f.tiles * p.tile) {
        int64_t len = min64(p.tile, p.rows - r);
        f.tiles = even_tiles(&m->rows, p.tile, p.row + r, p.row + p.rows, &f.step);
        for (int64_t q = 0; q < len; q += f.run) {
            f.hbm = hbm + (uint64_t)(layout_run(&m->rows, p.row + r + q, &f.run) * size);
            f.run = min64(f.run, len - q);
            f.sbuf = mem_part(mem_off(sbuf, r / p.tile * p.pitch * (int64_t)dtype_bytes(near)), q);
            fill_boxes(&f, 0, p.col, p.cols, 0, 0);
        }
    }
}

typedef struct Put {
    Emit *e;
    int queue;
    bool loads;
} Put;

static void put_one(void *arg, View hbm, View sbuf) {
    const Put *m = arg;
    put_dma(m->e, m->queue, m->loads ? sbuf : hbm, m->loads ? hbm : sbuf);
}

void matrix_put(Emit *e, int queue, bool loads, const Matrix *m, Piece p, int dtype, uint64_t hbm, int near, Mem sbuf) {
    matrix_transfers(m, p, dtype, hbm, near, sbuf, put_one, &(Put){e, queue, loads});
}
