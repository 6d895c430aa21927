// SPDX-License-Identifier: Apache-2.0
// transpose.c — transposes that take neighbours apart, through SBUF.
//
// The axis that is dense in the operand goes to the partitions by the transposing DMA, the axis that is dense in the result
// lies along them; stored row by row it is dense again. On chips whose DMA does not transpose the operand comes as it lies and
// the array transposes it, 128 x 128 at a time; for short axes GpSimd is quicker. Many short rows (a kernel's taps) becoming few long ones, or the other way, are cut over the
// partitions as they lie and transposed inside them by the engines.
#include <string.h>

#include "tile/area.h"
#include "tile/nest.h"

#define SLOT_BYTES 16384u
#define SLOTS 4
#define PARTS_MIN 32
#define RUN_MIN 64 // bytes of a stored row
#define SHORT_MAX 64
#define LONG_MIN (PARTITIONS * 16)
#define STAGE_BYTES 8192u // as it lies, where the array turns it: behind the slots

typedef struct Transpose {
    bool narrow;   // rows of `shorter` elements, `longer` of them
    bool to_short; // … are what it makes
    int64_t shorter, longer;
    Axis part, run;           // dense in the operand, dense in the result
    Nest rest; // the others, the slowest of the result first
    size_t size;
} Transpose;

static bool transpose_of(const Hlo *h, const HloOp *op, Transpose *t) {
    if (op->code != HLO_TRANSPOSE)
        return false;
    const HloType *in = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results);
    *t = (Transpose){.size = dtype_bytes(in->dtype)};
    if (in->kind != HT_TENSOR || in->dynamic || in->text || in->elems < 1 || in->elems >= INT32_MAX ||
        (t->size != 2 && t->size != 4))
        return false;
    Nest nest = {.rank = out->rank};
    uint32_t np;
    const int64_t *perm = hlo_ints(op, AK_PERMUTATION, &np);
    int64_t from[OTRN_MAX_RANK], to[OTRN_MAX_RANK];
    nest_strides(in, from), nest_strides(out, to);
    for (int i = 0; i < out->rank; i++)
        nest.axis[i] = (Axis){out->dims[i], from[perm[i]], to[i]};
    nest_join(&nest);
    int last = nest.rank - 1, dense = 0;
    while (dense <= last && nest.axis[dense].src != 1)
        dense++;
    if (last < 1 || dense >= last || nest.axis[last].dst != 1)
        return false;
    t->run = nest.axis[last], t->part = nest.axis[dense];
    if (last == 1) { // a matrix
        t->to_short = t->run.n < t->part.n;
        t->shorter = min64(t->run.n, t->part.n), t->longer = max64(t->run.n, t->part.n);
        t->narrow = t->shorter <= SHORT_MAX && t->longer >= LONG_MIN;
        if (t->narrow)
            return true;
    }
    for (int i = 0; i < last; i++)
        if (i != dense)
            t->rest.axis[t->rest.rank++] = nest.axis[i];
    int64_t bytes = t->run.n * (int64_t)t->size, tiles = ceil_div(t->part.n, PARTITIONS) * ceil_div(bytes, SLOT_BYTES);
    for (int i = 0; i < t->rest.rank; i++) // several of the fastest go together
        tiles *= i == t->rest.rank - 1 && bytes < SLOT_BYTES ? t->rest.axis[i].n / (SLOT_BYTES / bytes) + 1 : t->rest.axis[i].n;
    return t->part.n >= PARTS_MIN && bytes >= RUN_MIN && tiles < 65536;
}

bool transpose_takes(const Lower *l, const HloOp *op, Why *why) {
    Transpose t;
    return op->code == HLO_TRANSPOSE && (transpose_of(l->h, op, &t) || why_refuse(why, WHY_TURN));
}

bool transpose_by_array(const Emit *e, const Step *s) {
    Transpose t;
    return e->chip->dma_transpose <= 0 && transpose_of(e->l->h, hlo_at(e->l->h, s->op), &t) && !t.narrow;
}

typedef struct Transposing {
    Emit *e;
    Transpose t;
    uint64_t src, dst;
    int dtype;
    bool by_array; // then among the products, in their part of SBUF
    Ring slots, stages, banks;
    uint32_t next_pair; // of slots
    double busy[ENG_COUNT]; // by evictions, ns
    int64_t lo, hi; // positions on partitions
} Transposing;

// `count` pieces of `run` elements, `src` apart in the operand and `dst` apart in the slot.
static void transpose_pieces(Transposing *x, Mem slot, int64_t off, int64_t at, int64_t parts, int64_t run, Axis pieces) {
    int64_t size = (int64_t)x->t.size, most = (int64_t)STAGE_BYTES / (parts * size), bank_most = PSUM_BANK_BYTES / (run * size);
    for (int64_t c = 0, n; c < pieces.n; c += n) {
        uint32_t turn = ring_turn(&x->stages);
        Mem stage = ring_at(&x->stages, turn);
        n = min64(most, pieces.n - c);
        put_dma(x->e, turn ? QUEUE_IN2 : QUEUE_IN, VIEW(stage, x->dtype, {run}, {n, parts}, {parts, 1}),
                VIEW(mem_hbm(x->src + (uint64_t)((off + c * pieces.src) * size)), x->dtype, {run, x->t.run.src}, {n, pieces.src}, {parts, 1}));
        for (int64_t g = 0, some; g < n; g += some) {
            Mem bank = ring_next(&x->banks);
            some = min64(bank_most, n - g);
            put_transposes(x->e, x->dtype, bank, run, mem_off(stage, g * parts * size), parts, some * run, run, parts);
            put_evict(x->e, x->busy, VIEW(mem_off(slot, (at + (c + g) * pieces.dst) * size), x->dtype, {parts}, {some, pieces.dst}, {run, 1}),
                      VIEW(bank, x->dtype, {parts}, {some, run}, {run, 1}));
        }
    }
}

// What transpose_tile loads, by the array: a long run in pieces, short ones of the other axis together.
static void transpose_loaded(Transposing *x, Mem slot, int64_t off, int64_t parts, int64_t run, Axis many) {
    Axis each = {many.n, many.src, run};
    if (run <= PARTITIONS) {
        transpose_pieces(x, slot, off, 0, parts, run, each);
        return;
    }
    int64_t step = PARTITIONS * x->t.run.src, full = run / PARTITIONS, rest = run % PARTITIONS;
    for (int64_t m = 0; m < many.n; m++)
        transpose_pieces(x, slot, off + m * many.src, m * run, parts, PARTITIONS, (Axis){full, step, PARTITIONS});
    if (rest)
        transpose_pieces(x, slot, off + full * step, full * PARTITIONS, parts, rest, each);
}

// Partitions [p, p + parts), elements [r, r + run) of the run, `many` of the first other axis from there on.
static void transpose_tile(Transposing *x, int64_t off_src, int64_t off_dst, int64_t parts, int64_t run, Axis many) {
    Mem slot = ring_next(&x->slots), from = mem_hbm(x->src + (uint64_t)off_src * x->t.size), to = mem_hbm(x->dst + (uint64_t)off_dst * x->t.size);
    View tile = VIEW(slot, x->dtype, {parts}, {many.n, run}, {run, 1});
    if (x->by_array)
        transpose_loaded(x, slot, off_src, parts, run, many);
    else
        put_dma(x->e, QUEUE_ROWS_IN, tile, VIEW(from, x->dtype, {parts, 1}, {many.n, many.src}, {run, x->t.run.src}));
    put_dma(x->e, x->by_array ? QUEUE_OUT : QUEUE_ROWS_OUT, VIEW(to, x->dtype, {parts, x->t.part.dst}, {many.n, many.dst}, {run, 1}), tile);
}

static void transpose_parts(Transposing *x, int64_t src, int64_t dst, Axis many) {
    int64_t most = (int64_t)(SLOT_BYTES / x->t.size) / many.n;
    most = most < x->t.run.n ? most : x->t.run.n;
    for (int64_t p = x->lo; p < x->hi; p += PARTITIONS) {
        int64_t parts = x->hi - p < PARTITIONS ? x->hi - p : PARTITIONS;
        emit_task(x->e);
        for (int64_t r = 0; r < x->t.run.n; r += most)
            transpose_tile(x, src + p + r * x->t.run.src, dst + p * x->t.part.dst + r,
                      parts, x->t.run.n - r < most ? x->t.run.n - r : most, many);
    }
}

// `m` long-axis positions of each of `parts` partitions, `per` apart, from position r on.
static void narrow_tile(Transposing *x, int64_t r, int64_t parts, int64_t per, int64_t m) {
    const Transpose *t = &x->t;
    uint32_t pair = x->next_pair++ % (SLOTS / 2) * 2;
    Mem from = ring_at(&x->slots, pair), to = ring_at(&x->slots, pair + 1);
    int64_t outer = t->to_short ? m : t->shorter, inner = t->to_short ? t->shorter : m;
    uint64_t src = x->src + (uint64_t)(t->to_short ? r : r * t->shorter) * t->size, dst = x->dst + (uint64_t)(t->to_short ? r * t->shorter : r) * t->size;
    // short rows as they lie; long ones in pieces
    View rows = VIEW(mem_hbm(t->to_short ? dst : src), x->dtype, {parts, per * t->shorter}, {m * t->shorter, 1});
    View cols = VIEW(mem_hbm(t->to_short ? src : dst), x->dtype, {parts, per}, {t->shorter, t->longer}, {m, 1});
    View rows_near = VIEW(t->to_short ? to : from, x->dtype, {parts}, {m * t->shorter, 1});
    View cols_near = VIEW(t->to_short ? from : to, x->dtype, {parts}, {t->shorter, m}, {m, 1});
    emit_task(x->e);
    put_dma(x->e, QUEUE_ROWS_IN, t->to_short ? cols_near : rows_near, t->to_short ? cols : rows);
    put_copy(x->e, pair ? ENG_SCALAR : ENG_VECTOR, VIEW(to, x->dtype, {parts}, {outer, inner}, {inner, 1}),
             VIEW(from, x->dtype, {parts}, {outer, 1}, {inner, outer}));
    put_dma(x->e, QUEUE_ROWS_OUT, t->to_short ? rows : cols, t->to_short ? rows_near : cols_near);
}

static void transpose_narrow(Transposing *x) {
    const Transpose *t = &x->t;
    int64_t per = t->longer / PARTITIONS, rest = t->longer % PARTITIONS, most = (int64_t)(SLOT_BYTES / t->size) / t->shorter;
    for (int64_t r = 0; r < per; r += most)
        narrow_tile(x, r, PARTITIONS, per, per - r < most ? per - r : most);
    for (int64_t r = 0; r < rest; r += most)
        narrow_tile(x, per * PARTITIONS + r, 1, 0, rest - r < most ? rest - r : most);
}

static void transpose_wide(Transposing *x) {
    // as many of one other axis as a slot has room for go in one transfer
    const Nest *rest = &x->t.rest;
    int outer = rest->rank ? rest->rank - 1 : 0;
    Axis many = rest->rank ? rest->axis[outer] : (Axis){1, 0, 0};
    int64_t at[OTRN_MAX_RANK] = {0}, all = many.n, each = max64(1, min64(all, (int64_t)(SLOT_BYTES / x->t.size) / x->t.run.n));
    do {
        int64_t src, dst;
        nest_at(rest, outer, at, &src, &dst);
        for (int64_t k = 0; k < all; k += each) {
            many.n = min64(each, all - k);
            transpose_parts(x, src + k * many.src, dst + k * many.dst, many);
        }
    } while (nest_next(rest, outer, at));
}

void emit_transpose(Emit *e, const Step *s) {
    const Hlo *h = e->l->h;
    const HloOp *op = hlo_at(h, s->op);
    Transposing *x = ARENA_NEW(e->c->scratch, Transposing);
    *x = (Transposing){.e = e, .src = emit_addr(e, e->l->refs.at[s->ins]), .dst = emit_addr(e, e->l->refs.at[s->outs]),
                   .dtype = hlo_value_type(h, op->results)->dtype, .by_array = transpose_by_array(e, s)};
    transpose_of(h, op, &x->t);
    Area area = area_make(e, x->by_array ? 0 : ROWS_AREA_BEGIN, x->by_array ? ROWS_AREA_BEGIN : ROWS_AREA_BEGIN + ROWS_AREA_BYTES);
    area_ring(&area, &x->slots, SLOTS, SLOT_BYTES);
    area_ring(&area, &x->stages, x->by_array ? 2 : 0, STAGE_BYTES);
    x->banks = ring_of_banks(e, 0, PSUM_BANKS);
    area_open(&area);
    if (x->t.narrow) {
        transpose_narrow(x);
    } else {
        emit_share(e, x->t.part.n, PARTITIONS, &x->lo, &x->hi);
        transpose_wide(x);
    }
    area_close(&area);
}
