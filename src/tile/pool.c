// SPDX-License-Identifier: Apache-2.0
// pool.c — pooling on the vector engine: sums and extremes over windows by strided operands.
//
// The first axes of the result go to the partitions, the rest lies along them: for images with channels last (batch, row)
// and (column, channel), with channels first (batch, channel) and (row, column). A tap of an axis on the partitions is a load
// of its own, a tap along them the same SBUF seen from another offset. The taps are combined in the order of the window.
//
//   load rows o * stride + t of 128 partitions ──► acc = acc op x[strided], one instruction a tap ──► store
#include <string.h>

#include "hlo/pool.h"
#include "tile/area.h"
#include "tile/layout.h"
#include "tile/rows.h"

#define SLOT_BYTES 16384u // of a tile of x, and of the accumulator
#define SLOTS 4
#define ACCS 2
#define ALONG_MAX 4 // axes along the partitions
#define ALONG_MIN 32 // elements: fewer are not worth an instruction
#define PARTS_MIN 16
#define INSTS_MAX (1 << 20)

typedef struct Way { // an axis that windows go along
    int64_t out, window, stride, gap, x, y; // x, y: strides in elements
} Way;

typedef struct Pool {
    Emit *e;
    PoolForm f;
    Way axis[POOL_RANK_MAX];
    int rank, split; // axes before split are on the partitions
    int64_t parts;   // positions on partitions
    int64_t chunk;   // positions of the first axis along them that go at once
    int dtype;
    uint64_t x, y;
    Ring slots, accs;
} Pool;

static int64_t span(const Way *a, int64_t out) { return (out - 1) * a->stride + (a->window - 1) * a->gap + 1; }

// Elements of x and of the result along a partition when the first axis there has `chunk` positions.
static void along(const Pool *p, int64_t chunk, int64_t *in, int64_t *out) {
    *in = *out = 1;
    for (int i = p->split; i < p->rank; i++) {
        int64_t n = i == p->split ? chunk : p->axis[i].out;
        *in *= span(&p->axis[i], n);
        *out *= n;
    }
}

static bool cut(Pool *p) {
    for (p->split = 0, p->parts = 1; p->split < p->rank - 1 && p->parts < PARTITIONS; p->split++)
        p->parts *= p->axis[p->split].out;
    int64_t most = SLOT_BYTES / 4, in, out;
    p->chunk = p->axis[p->split].out;
    for (along(p, p->chunk, &in, &out); in > most || out > most; along(p, p->chunk, &in, &out)) {
        if (p->chunk == 1)
            return false;
        p->chunk = (p->chunk + 1) / 2;
    }
    int64_t tiles = (p->parts / PARTITIONS + 1) * (p->axis[p->split].out / p->chunk + 1);
    return p->rank - p->split <= ALONG_MAX && out >= ALONG_MIN && p->parts >= PARTS_MIN && tiles * p->f.taps < INSTS_MAX;
}

static bool pool_init(const Hlo *h, const HloOp *op, Pool *p, Why *why) {
    if (op->code != HLO_REDUCE_WINDOW)
        return false;
    if (!pool_read(h, op, &p->f))
        return why_refuse(why, WHY_WINDOW);
    if (!pool_is_inside(&p->f))
        return why_refuse(why, WHY_WINDOW_EDGES);
    int64_t x = 1, y = 1;
    Way axes[POOL_RANK_MAX];
    int n = 0;
    for (int i = p->f.rank; i-- > 0;) {
        const PoolAxis *a = &p->f.axis[i];
        Way now = {a->out, a->window, a->stride, a->gap, x, y};
        x *= a->in, y *= a->out;
        Way *inner = n ? &axes[n - 1] : NULL; // plain axes that continue each other are one
        bool plain = a->window == 1 && a->stride == 1 && a->out == a->in;
        bool goes_on = inner && now.x == inner->x * inner->out && now.y == inner->y * inner->out;
        if (goes_on && plain && inner->window == 1 && inner->stride == 1)
            inner->out *= now.out;
        else if (a->in > 1)
            axes[n++] = now;
    }
    for (int i = 0; i < n; i++)
        p->axis[i] = axes[n - 1 - i];
    p->rank = n;
    p->dtype = hlo_value_type(h, op->results)->dtype;
    return (n > 0 && cut(p)) || why_refuse(why, WHY_WINDOW_SMALL);
}

bool pool_takes(const Lower *l, const HloOp *op, Why *why) {
    Pool p = {0};
    return pool_init(l->h, op, &p, why);
}

// --- emission ------------------------------------------------------------------------------------------

typedef struct Tile {
    int64_t p0, parts, c0, chunk; // partitions; positions of the first axis along them
} Tile;

// Positions on the partitions, in x or in the result, and what is `along` them.
static Matrix matrix_of(const Pool *p, bool x, Layout along) {
    Matrix m = {layout_make(), along};
    for (int i = 0; i < p->split; i++)
        layout_add(&m.rows, p->axis[i].out, x ? p->axis[i].stride * p->axis[i].x : p->axis[i].y);
    return m;
}

// x for the tile, moved by `shift` elements: a box of whole spans.
static Mem load(Pool *p, const Tile *t, int64_t shift) {
    Mem slot = ring_next(&p->slots);
    Layout spans = layout_make();
    for (int i = p->split; i < p->rank; i++)
        layout_add(&spans, span(&p->axis[i], i == p->split ? t->chunk : p->axis[i].out), p->axis[i].x);
    Matrix m = matrix_of(p, true, spans);
    uint64_t from = p->x + (uint64_t)(shift + t->c0 * p->axis[p->split].stride * p->axis[p->split].x) * dtype_bytes(p->dtype);
    matrix_put(p->e, QUEUE_ROWS_IN, true, &m, (Piece){t->p0, t->parts, 0, spans.size, PARTITIONS, spans.size}, p->dtype, from, p->dtype, slot);
    return slot;
}

// acc = acc op x at the tap with these indices along the partitions; the first one begins.
static void combine(Pool *p, const Tile *t, Mem slot, Mem acc, const int64_t *tap, bool first) {
    int count = p->rank - p->split;
    int64_t off = 0, in = 1, out = 1;
    View x = VIEW(slot, p->dtype, {t->parts}), to = VIEW(acc, DT_F32, {t->parts});
    x.rank = to.rank = (uint8_t)(1 + count);
    for (int k = count; k-- > 0;) {
        const Way *a = &p->axis[p->split + k];
        int64_t n = k ? a->out : t->chunk;
        x.at[1 + k] = (ViewAxis){n, a->stride * in}, to.at[1 + k] = (ViewAxis){n, out};
        off += tap[p->split + k] * a->gap * in;
        in *= span(a, n), out *= n;
    }
    x.mem = mem_off(slot, off * (int64_t)dtype_bytes(p->dtype));
    if (first) {
        put_copy(p->e, ENG_SCALAR, to, x);
        return;
    }
    assert(count <= ALONG_MAX);
    put_inst(p->e, isa_tensor_tensor(ENG_VECTOR, to, to, rows_alu(p->f.code), x), &to, &x, NULL);
}

static void store(Pool *p, const Tile *t, Mem acc, int64_t elems) {
    Matrix m = matrix_of(p, false, (Layout){{{elems, 1}}, 1, elems});
    uint64_t to = p->y + (uint64_t)(t->c0 * p->axis[p->split].y) * dtype_bytes(p->dtype);
    matrix_put(p->e, QUEUE_ROWS_OUT, false, &m, (Piece){t->p0, t->parts, 0, elems, PARTITIONS, elems}, p->dtype, to, DT_F32, acc);
}

// Taps in the order of the window: those on the partitions are the slower ones.
static void tile(Pool *p, const Tile *t) {
    Mem acc = ring_next(&p->accs), slot = {0};
    int64_t tap[POOL_RANK_MAX] = {0}, in, elems;
    along(p, t->chunk, &in, &elems);
    for (bool more = true, first = true, fresh = true; more; first = false) {
        if (fresh) {
            int64_t shift = 0;
            for (int i = 0; i < p->split; i++)
                shift += tap[i] * p->axis[i].gap * p->axis[i].x;
            slot = load(p, t, shift);
        }
        combine(p, t, slot, acc, tap, first);
        more = fresh = false;
        for (int i = p->rank; i-- > 0 && !more;) {
            more = ++tap[i] < p->axis[i].window;
            tap[i] = more ? tap[i] : 0;
            fresh = fresh || (more && i < p->split);
        }
    }
    store(p, t, acc, elems);
}

void emit_pool(Emit *e, const Step *s) {
    Pool *p = ARENA_NEW(e->c->scratch, Pool);
    *p = (Pool){.e = e};
    pool_init(e->l->h, hlo_at(e->l->h, s->op), p, NULL);
    p->x = emit_addr(e, e->l->refs.at[s->ins]), p->y = emit_addr(e, e->l->refs.at[s->outs]);
    Area area = area_make(e, ROWS_AREA_BEGIN, ROWS_AREA_BEGIN + ROWS_AREA_BYTES);
    area_ring(&area, &p->slots, SLOTS, SLOT_BYTES);
    area_ring(&area, &p->accs, ACCS, SLOT_BYTES);
    area_open(&area);
    int64_t lo, hi;
    emit_share(e, p->parts, PARTITIONS, &lo, &hi);
    for (int64_t p0 = lo; p0 < hi; p0 += PARTITIONS)
        for (int64_t c0 = 0; c0 < p->axis[p->split].out; c0 += p->chunk) {
            int64_t left = p->axis[p->split].out - c0, parts = hi - p0;
            emit_task(e);
            tile(p, &(Tile){p0, parts < PARTITIONS ? parts : PARTITIONS, c0, left < p->chunk ? left : p->chunk});
        }
    area_close(&area);
}
