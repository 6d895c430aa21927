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
#include "tile/emit.h"

#define PARTS 128
#define SLOT_BYTES 16384u // of a tile of x, and of the accumulator
#define SLOTS 4
#define ACCS 2
#define ALONG_MAX 4 // axes along the partitions
#define ALONG_MIN 32 // elements: fewer are not worth an instruction
#define PARTS_MIN 16
#define INSTS_MAX (1 << 20)

typedef struct Axis {
    int64_t out, window, stride, gap, x, y; // x, y: strides in elements
} Axis;

typedef struct Pool {
    Emit *e;
    PoolForm f;
    Axis axis[POOL_RANK_MAX];
    int rank, split; // axes before split are on the partitions
    int64_t parts;   // positions on partitions
    int64_t chunk;   // positions of the first axis along them that go at once
    int dtype;
    uint64_t x, y;
    Haz slots[SLOTS], accs[ACCS];
    uint32_t slot, acc;
} Pool;

static int64_t span(const Axis *a, int64_t out) { return (out - 1) * a->stride + (a->window - 1) * a->gap + 1; }

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
    for (p->split = 0, p->parts = 1; p->split < p->rank - 1 && p->parts < PARTS; p->split++)
        p->parts *= p->axis[p->split].out;
    int64_t most = SLOT_BYTES / 4, in, out;
    p->chunk = p->axis[p->split].out;
    for (along(p, p->chunk, &in, &out); in > most || out > most; along(p, p->chunk, &in, &out)) {
        if (p->chunk == 1)
            return false;
        p->chunk = (p->chunk + 1) / 2;
    }
    int64_t tiles = (p->parts / PARTS + 1) * (p->axis[p->split].out / p->chunk + 1);
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
    Axis axes[POOL_RANK_MAX];
    int n = 0;
    for (int i = p->f.rank; i-- > 0;) {
        const PoolAxis *a = &p->f.axis[i];
        Axis now = {a->out, a->window, a->stride, a->gap, x, y};
        x *= a->in, y *= a->out;
        Axis *inner = n ? &axes[n - 1] : NULL; // plain axes that continue each other are one
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

bool pool_is_vector(const Hlo *h, const HloOp *op, Why *why) {
    Pool p = {0};
    return pool_init(h, op, &p, why);
}

// --- emission ------------------------------------------------------------------------------------------

static uint32_t slot_at(uint32_t slot) { return ROWS_AREA_BEGIN + slot * SLOT_BYTES; }
static uint32_t acc_at(uint32_t acc) { return ROWS_AREA_BEGIN + (SLOTS + acc) * SLOT_BYTES; }

// Offsets of partition position `at`, and how many from there on lie one step apart in x and in the result.
static int64_t run_from(const Pool *p, int64_t at, int64_t *x, int64_t *y) {
    *x = *y = 0;
    int64_t rest = at, run = 1;
    for (int i = p->split; i-- > 0;) {
        const Axis *a = &p->axis[i];
        if (i == p->split - 1)
            run = a->out - rest % a->out;
        *x += rest % a->out * a->stride * a->x;
        *y += rest % a->out * a->y;
        rest /= a->out;
    }
    return run;
}

typedef struct Tile {
    int64_t p0, parts, c0, chunk; // partitions; positions of the first axis along them
} Tile;

// x for the tile, moved by `shift` elements: a box of whole spans.
static uint32_t load(Pool *p, const Tile *t, int64_t shift) {
    uint32_t slot = p->slot++ % SLOTS;
    Haz *haz = &p->slots[slot];
    size_t size = dtype_bytes(p->dtype);
    const Axis *last = p->split ? &p->axis[p->split - 1] : NULL;
    for (int64_t at = 0, run; at < t->parts; at += run) {
        int64_t x, y, flat = 1;
        run = run_from(p, t->p0 + at, &x, &y);
        run = run < t->parts - at ? run : t->parts - at;
        IsaInst in = {.op = ISA_DMA, .engine = ENG_GPSIMD, .queue = QUEUE_ROWS_IN, .stype = (uint8_t)p->dtype};
        x += shift + t->c0 * p->axis[p->split].stride * p->axis[p->split].x;
        in.src = p->x + (uint64_t)x * size;
        in.dst = addr_sbuf((uint32_t)at, slot_at(slot));
        in.n[0] = (uint32_t)run;
        in.s[0] = last ? (int32_t)(last->stride * last->x) : 0;
        int k = 3;
        for (int i = p->rank; i-- > p->split;) {
            int64_t n = span(&p->axis[i], i == p->split ? t->chunk : p->axis[i].out), step = p->axis[i].x;
            if (k < 3 && in.s[k + 1] * (int64_t)in.n[k + 1] == step) { // goes on where the axis inside it ends
                in.n[k + 1] *= (uint32_t)n;
            } else {
                in.n[k] = (uint32_t)n, in.s[k] = (int32_t)step, in.d[k] = (int32_t)flat;
                k--;
            }
            flat *= n;
        }
        emit_inst(p->e, in, NULL, 0, &haz, 1);
    }
    return slot;
}

// acc = acc op x at the tap with these indices along the partitions; the first one begins.
static void combine(Pool *p, const Tile *t, uint32_t slot, uint32_t acc, const int64_t *tap, bool first) {
    int64_t n[ALONG_MAX], flat[ALONG_MAX], dense[ALONG_MAX], off = 0, in = 1, out = 1;
    int count = p->rank - p->split;
    for (int k = count; k-- > 0;) {
        const Axis *a = &p->axis[p->split + k];
        n[k] = k ? a->out : t->chunk;
        flat[k] = a->stride * in, dense[k] = out;
        off += tap[p->split + k] * a->gap * in;
        in *= span(a, n[k]), out *= n[k];
    }
    IsaInst op = {.op = ISA_TENSOR_TENSOR, .engine = ENG_VECTOR, .dtype = DT_F32, .stype = DT_F32, .ttype = (uint8_t)p->dtype};
    op.op0 = p->f.code == HLO_ADD ? ALU_ADD : p->f.code == HLO_MAXIMUM ? ALU_MAX : ALU_MIN;
    op.dst = op.src = addr_sbuf(0, acc_at(acc));
    op.src1 = addr_sbuf(0, slot_at(slot) + (uint32_t)((uint64_t)off * dtype_bytes(p->dtype)));
    op.n[0] = (uint32_t)t->parts;
    for (int k = 0, axis = 5 - count; k < count; k++, axis++)
        op.n[axis] = (uint32_t)n[k], op.d[axis] = op.s[axis] = (int32_t)dense[k], op.t[axis] = (int32_t)flat[k];
    Haz *reads[] = {&p->slots[slot]}, *writes[] = {&p->accs[acc]};
    if (first) {
        op.op = ISA_COPY, op.engine = ENG_SCALAR, op.op0 = 0;
        op.stype = op.ttype, op.src = op.src1;
        memcpy(op.s, op.t, sizeof op.s);
        memset(op.t, 0, sizeof op.t);
        op.src1 = 0, op.ttype = 0;
    }
    emit_inst(p->e, op, reads, 1, writes, 1);
}

static void store(Pool *p, const Tile *t, uint32_t acc, int64_t elems) {
    size_t size = dtype_bytes(p->dtype);
    for (int64_t at = 0, run; at < t->parts; at += run) {
        int64_t x, y;
        run = run_from(p, t->p0 + at, &x, &y);
        run = run < t->parts - at ? run : t->parts - at;
        IsaInst out = {.op = ISA_DMA, .engine = ENG_GPSIMD, .queue = QUEUE_ROWS_OUT, .stype = DT_F32,
                       .dtype = (uint8_t)(p->dtype == DT_F32 ? 0 : p->dtype), .src = addr_sbuf((uint32_t)at, acc_at(acc))};
        out.dst = p->y + (uint64_t)(y + t->c0 * p->axis[p->split].y) * size;
        out.n[0] = (uint32_t)run, out.n[3] = (uint32_t)elems;
        out.d[0] = p->split ? (int32_t)p->axis[p->split - 1].y : 0, out.d[3] = out.s[3] = 1;
        emit_inst(p->e, out, (Haz *[]){&p->accs[acc]}, 1, NULL, 0);
    }
}

// Taps in the order of the window: those on the partitions are the slower ones.
static void tile(Pool *p, const Tile *t) {
    uint32_t acc = p->acc++ % ACCS, slot = 0;
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

static void share_area(Pool *p, bool out) {
    for (uint32_t i = 0; i < SLOTS; i++)
        emit_area(p->e, &p->slots[i], slot_at(i), SLOT_BYTES, out);
    for (uint32_t i = 0; i < ACCS; i++)
        emit_area(p->e, &p->accs[i], acc_at(i), SLOT_BYTES, out);
}

void emit_pool(Emit *e, const Step *s) {
    Pool *p = ARENA_NEW(e->c->scratch, Pool);
    *p = (Pool){.e = e};
    pool_init(e->l->h, hlo_at(e->l->h, s->op), p, NULL);
    p->x = emit_addr(e, e->l->refs.at[s->ins]), p->y = emit_addr(e, e->l->refs.at[s->outs]);
    share_area(p, false);
    int64_t lo, hi;
    emit_share(e, p->parts, PARTS, &lo, &hi);
    for (int64_t p0 = lo; p0 < hi; p0 += PARTS)
        for (int64_t c0 = 0; c0 < p->axis[p->split].out; c0 += p->chunk) {
            int64_t left = p->axis[p->split].out - c0, parts = hi - p0;
            emit_task(e);
            tile(p, &(Tile){p0, parts < PARTS ? parts : PARTS, c0, left < p->chunk ? left : p->chunk});
        }
    share_area(p, true);
}
