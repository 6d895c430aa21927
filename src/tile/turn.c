// SPDX-License-Identifier: Apache-2.0
// turn.c — transposes that take neighbours apart, through SBUF.
//
// The axis that is dense in the operand goes to the partitions by the transposing DMA, the axis that is dense in the result
// lies along them; stored row by row it is dense again. On chips whose DMA does not transpose the operand comes as it lies and
// the array turns it, 128 x 128 at a time; for short axes GpSimd is quicker. Many short rows (a kernel's taps) becoming few long ones, or the other way, are cut over the
// partitions as they lie and turned inside them by the engines.
#include <string.h>

#include "tile/emit.h"

#define PARTS 128
#define SLOT_BYTES 16384u
#define SLOTS 4
#define PARTS_MIN 32
#define RUN_MIN 64 // bytes of a stored row
#define SHORT_MAX 64
#define LONG_MIN (PARTS * 16)
#define STAGE_BYTES 8192u // as it lies, where the array turns it: behind the slots
#define BANKS 8

typedef struct Axis {
    int64_t n, src, dst;
} Axis;

typedef struct Turn {
    bool narrow;   // rows of `shorter` elements, `longer` of them
    bool to_short; // … are what it makes
    int64_t shorter, longer;
    Axis part, run;           // dense in the operand, dense in the result
    Axis rest[OTRN_MAX_RANK]; // the others
    int nrest;
    size_t size;
} Turn;

// Axes of the result with their strides on both sides, those that continue each other joined.
static int axes_of(const HloType *in, const HloType *out, const int64_t *perm, Axis *axes) {
    int64_t from[OTRN_MAX_RANK], s = 1, d = 1;
    for (int i = in->rank; i-- > 0; s *= in->dims[i])
        from[i] = s;
    int n = 0;
    for (int i = out->rank; i-- > 0; d *= out->dims[i]) {
        Axis a = {out->dims[i], from[perm[i]], d};
        if (a.n == 1)
            continue;
        if (n && a.src == axes[n - 1].src * axes[n - 1].n && a.dst == axes[n - 1].dst * axes[n - 1].n)
            axes[n - 1].n *= a.n;
        else
            axes[n++] = a;
    }
    return n; // the fastest of the result first
}

static bool turn_of(const Hlo *h, const HloOp *op, Turn *t) {
    if (op->code != HLO_TRANSPOSE)
        return false;
    const HloType *in = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results);
    *t = (Turn){.size = dtype_bytes(in->dtype)};
    if (in->kind != HT_TENSOR || in->dynamic || in->text || in->elems < 1 || in->elems >= INT32_MAX ||
        (t->size != 2 && t->size != 4))
        return false;
    Axis axes[OTRN_MAX_RANK];
    uint32_t np;
    int n = axes_of(in, out, hlo_ints(op, AK_PERMUTATION, &np), axes);
    int dense = -1;
    for (int i = 0; i < n; i++)
        dense = axes[i].src == 1 ? i : dense;
    if (n < 2 || dense < 1 || axes[0].dst != 1)
        return false;
    if (n == 2) { // a matrix
        t->to_short = axes[0].n < axes[1].n;
        t->shorter = t->to_short ? axes[0].n : axes[1].n, t->longer = t->to_short ? axes[1].n : axes[0].n;
        t->narrow = t->shorter <= SHORT_MAX && t->longer >= LONG_MIN;
        if (t->narrow)
            return true;
    }
    t->run = axes[0], t->part = axes[dense];
    for (int i = 1; i < n; i++)
        if (i != dense)
            t->rest[t->nrest++] = axes[i];
    int64_t bytes = t->run.n * (int64_t)t->size, tiles = (t->part.n + PARTS - 1) / PARTS;
    tiles *= (bytes + SLOT_BYTES - 1) / SLOT_BYTES;
    if (t->nrest && bytes < SLOT_BYTES) // several of the first other axis go together
        tiles *= t->rest[0].n / (SLOT_BYTES / bytes) + 1;
    else if (t->nrest)
        tiles *= t->rest[0].n;
    for (int i = 1; i < t->nrest; i++)
        tiles *= t->rest[i].n;
    return t->part.n >= PARTS_MIN && bytes >= RUN_MIN && tiles < 65536;
}

bool turn_is_transfer(const Hlo *h, const HloOp *op, Why *why) {
    Turn t;
    return op->code == HLO_TRANSPOSE && (turn_of(h, op, &t) || why_refuse(why, WHY_TURN));
}

bool turn_by_array(const Emit *e, const Step *s) {
    Turn t;
    return e->chip->dma_transpose <= 0 && turn_of(e->l->h, hlo_at(e->l->h, s->op), &t) && !t.narrow;
}

typedef struct Turning {
    Emit *e;
    Turn t;
    uint64_t src, dst;
    int dtype;
    bool by_array; // then among the products, in their part of SBUF
    Haz slots[SLOTS], stages[2];
    uint32_t next, next_stage, next_bank;
    int64_t lo, hi; // positions on partitions
} Turning;

static uint32_t slot_at(const Turning *x, uint32_t slot) { return (x->by_array ? 0 : ROWS_AREA_BEGIN) + slot * SLOT_BYTES; }
static uint32_t stage_at(uint32_t stage) { return SLOTS * SLOT_BYTES + stage * STAGE_BYTES; }

// `count` pieces of `run` elements, `src` apart in the operand and `near` apart in the slot.
static void turn_pieces(Turning *x, uint32_t slot, int64_t off, int64_t at, int64_t parts, int64_t run, Axis pieces) {
    int64_t size = (int64_t)x->t.size, most = (int64_t)STAGE_BYTES / (parts * size), bank_most = ISA_PSUM_BANK_BYTES / (run * size);
    for (int64_t c = 0, n; c < pieces.n; c += n) {
        uint32_t stage = x->next_stage++ % 2;
        Haz *haz = &x->stages[stage];
        n = pieces.n - c < most ? pieces.n - c : most;
        IsaInst in = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = stage ? QUEUE_IN2 : QUEUE_IN, .stype = (uint8_t)x->dtype};
        in.src = x->src + (uint64_t)((off + c * pieces.src) * size), in.dst = addr_sbuf(0, stage_at(stage));
        in.n[0] = (uint32_t)run, in.n[2] = (uint32_t)n, in.n[3] = (uint32_t)parts;
        in.s[0] = (int32_t)x->t.run.src, in.s[2] = (int32_t)pieces.src, in.d[2] = (int32_t)parts, in.s[3] = in.d[3] = 1;
        emit_inst(x->e, in, NULL, 0, &haz, 1);
        for (int64_t g = 0, some; g < n; g += some) {
            uint32_t bank = x->next_bank++ % BANKS;
            Haz *bhaz = &x->e->bank_haz[bank];
            some = n - g < bank_most ? n - g : bank_most;
            for (int64_t i = 0; i < some; i++) {
                IsaInst turn = {.op = ISA_TRANSPOSE, .engine = ENG_TENSOR, .dtype = (uint8_t)x->dtype, .stype = (uint8_t)x->dtype};
                turn.src = addr_sbuf(0, stage_at(stage) + (uint32_t)((g + i) * parts * size));
                turn.dst = addr_psum(0, bank * ISA_PSUM_BANK_BYTES + (uint32_t)(i * run * size));
                turn.n[0] = (uint32_t)run, turn.n[1] = (uint32_t)parts, turn.d[1] = turn.s[1] = 1;
                emit_inst(x->e, turn, &haz, 1, &bhaz, 1);
            }
            IsaInst cp = {.op = ISA_COPY, .engine = bank % 2 ? ENG_SCALAR : ENG_VECTOR, .dtype = (uint8_t)x->dtype, .stype = (uint8_t)x->dtype};
            cp.src = addr_psum(0, bank * ISA_PSUM_BANK_BYTES);
            cp.dst = addr_sbuf(0, slot_at(x, slot) + (uint32_t)((at + (c + g) * pieces.dst) * size));
            cp.n[0] = (uint32_t)parts, cp.n[3] = (uint32_t)some, cp.n[4] = (uint32_t)run;
            cp.d[3] = (int32_t)pieces.dst, cp.d[4] = 1, cp.s[3] = (int32_t)run, cp.s[4] = 1;
            emit_inst(x->e, cp, &bhaz, 1, (Haz *[]){&x->slots[slot]}, 1);
        }
    }
}

// What turn_tile loads, by the array: a long run in pieces, short ones of the other axis together.
static void turn_loaded(Turning *x, uint32_t slot, int64_t off, int64_t parts, int64_t run, Axis many) {
    Axis each = {many.n, many.src, run};
    if (run <= PARTS) {
        turn_pieces(x, slot, off, 0, parts, run, each);
        return;
    }
    int64_t step = PARTS * x->t.run.src, full = run / PARTS, rest = run % PARTS;
    for (int64_t m = 0; m < many.n; m++)
        turn_pieces(x, slot, off + m * many.src, m * run, parts, PARTS, (Axis){full, step, PARTS});
    if (rest)
        turn_pieces(x, slot, off + full * step, full * PARTS, parts, rest, each);
}

// Partitions [p, p + parts), elements [r, r + run) of the run, `many` of the first other axis from there on.
static void turn_tile(Turning *x, int64_t off_src, int64_t off_dst, int64_t parts, int64_t run, Axis many) {
    uint32_t slot = x->next++ % SLOTS;
    Haz *haz = &x->slots[slot];
    IsaInst in = {.op = ISA_DMA, .engine = ENG_GPSIMD, .queue = QUEUE_ROWS_IN, .stype = (uint8_t)x->dtype};
    in.src = x->src + (uint64_t)off_src * x->t.size, in.dst = addr_sbuf(0, slot_at(x, slot));
    in.n[0] = (uint32_t)parts, in.n[2] = (uint32_t)many.n, in.n[3] = (uint32_t)run;
    in.s[0] = 1, in.s[2] = (int32_t)many.src, in.s[3] = (int32_t)x->t.run.src;
    in.d[2] = (int32_t)run, in.d[3] = 1;
    if (x->by_array)
        turn_loaded(x, slot, off_src, parts, run, many);
    else
        emit_inst(x->e, in, NULL, 0, &haz, 1);
    IsaInst out = {.op = ISA_DMA, .engine = ENG_GPSIMD, .queue = QUEUE_ROWS_OUT, .stype = (uint8_t)x->dtype};
    if (x->by_array)
        out.engine = ENG_SYNC, out.queue = QUEUE_OUT;
    out.src = addr_sbuf(0, slot_at(x, slot)), out.dst = x->dst + (uint64_t)off_dst * x->t.size;
    out.n[0] = (uint32_t)parts, out.n[2] = (uint32_t)many.n, out.n[3] = (uint32_t)run;
    out.d[0] = (int32_t)x->t.part.dst, out.d[2] = (int32_t)many.dst, out.d[3] = 1;
    out.s[2] = (int32_t)run, out.s[3] = 1;
    emit_inst(x->e, out, &haz, 1, NULL, 0);
}

static void turn_parts(Turning *x, int64_t src, int64_t dst, Axis many) {
    int64_t most = (int64_t)(SLOT_BYTES / x->t.size) / many.n;
    most = most < x->t.run.n ? most : x->t.run.n;
    for (int64_t p = x->lo; p < x->hi; p += PARTS) {
        int64_t parts = x->hi - p < PARTS ? x->hi - p : PARTS;
        emit_task(x->e);
        for (int64_t r = 0; r < x->t.run.n; r += most)
            turn_tile(x, src + p + r * x->t.run.src, dst + p * x->t.part.dst + r,
                      parts, x->t.run.n - r < most ? x->t.run.n - r : most, many);
    }
}

// `m` long-axis positions of each of `parts` partitions, `per` apart, from position r on.
static void narrow_tile(Turning *x, int64_t r, int64_t parts, int64_t per, int64_t m) {
    const Turn *t = &x->t;
    uint32_t a = x->next++ % (SLOTS / 2) * 2, b = a + 1;
    Haz *from = &x->slots[a], *to = &x->slots[b];
    IsaInst in = {.op = ISA_DMA, .engine = ENG_GPSIMD, .queue = QUEUE_ROWS_IN, .stype = (uint8_t)x->dtype};
    IsaInst out = {.op = ISA_DMA, .engine = ENG_GPSIMD, .queue = QUEUE_ROWS_OUT, .stype = (uint8_t)x->dtype};
    IsaInst cp = {.op = ISA_COPY, .engine = a ? ENG_SCALAR : ENG_VECTOR, .stype = (uint8_t)x->dtype, .dtype = (uint8_t)x->dtype};
    in.dst = cp.src = addr_sbuf(0, slot_at(x, a)), out.src = cp.dst = addr_sbuf(0, slot_at(x, b));
    in.n[0] = out.n[0] = cp.n[0] = (uint32_t)parts;
    IsaInst *rows = t->to_short ? &out : &in, *cols = t->to_short ? &in : &out; // short rows as they lie; long ones in pieces
    int32_t *rows_far = t->to_short ? out.d : in.s, *cols_far = t->to_short ? in.s : out.d;
    int32_t *rows_near = t->to_short ? out.s : in.d, *cols_near = t->to_short ? in.d : out.s;
    rows->n[3] = (uint32_t)(m * t->shorter);
    rows_far[0] = (int32_t)(per * t->shorter), rows_far[3] = rows_near[3] = 1;
    cols->n[2] = (uint32_t)t->shorter, cols->n[3] = (uint32_t)m;
    cols_far[0] = (int32_t)per, cols_far[2] = (int32_t)t->longer, cols_far[3] = 1;
    cols_near[2] = (int32_t)m, cols_near[3] = 1;
    in.src = x->src + (uint64_t)(t->to_short ? r : r * t->shorter) * t->size;
    out.dst = x->dst + (uint64_t)(t->to_short ? r * t->shorter : r) * t->size;
    cp.n[3] = (uint32_t)(t->to_short ? m : t->shorter), cp.n[4] = (uint32_t)(t->to_short ? t->shorter : m);
    cp.d[3] = (int32_t)cp.n[4], cp.d[4] = 1;
    cp.s[3] = 1, cp.s[4] = (int32_t)cp.n[3];
    emit_task(x->e);
    emit_inst(x->e, in, NULL, 0, &from, 1);
    emit_inst(x->e, cp, &from, 1, &to, 1);
    emit_inst(x->e, out, &to, 1, NULL, 0);
}

static void turn_narrow(Turning *x) {
    const Turn *t = &x->t;
    int64_t per = t->longer / PARTS, rest = t->longer % PARTS, most = (int64_t)(SLOT_BYTES / t->size) / t->shorter;
    for (int64_t r = 0; r < per; r += most)
        narrow_tile(x, r, PARTS, per, per - r < most ? per - r : most);
    for (int64_t r = 0; r < rest; r += most)
        narrow_tile(x, per * PARTS + r, 1, 0, rest - r < most ? rest - r : most);
}

static void turn_wide(Turning *x) {
    // as many of one other axis as a slot has room for go in one transfer
    Axis many = {1, 0, 0};
    int64_t fit = (int64_t)(SLOT_BYTES / x->t.size) / x->t.run.n;
    if (x->t.nrest)
        many = x->t.rest[0];
    int64_t at[OTRN_MAX_RANK] = {0}, all = many.n, each = fit < 1 ? 1 : fit < all ? fit : all;
    for (bool more = true; more;) {
        int64_t src = 0, dst = 0;
        for (int i = 1; i < x->t.nrest; i++)
            src += at[i] * x->t.rest[i].src, dst += at[i] * x->t.rest[i].dst;
        for (int64_t k = 0; k < all; k += each) {
            many.n = all - k < each ? all - k : each;
            turn_parts(x, src + k * many.src, dst + k * many.dst, many);
        }
        more = false;
        for (int i = x->t.nrest; i-- > 1 && !more;) {
            more = ++at[i] < x->t.rest[i].n;
            at[i] = more ? at[i] : 0;
        }
    }
}

static void share_area(Turning *x, bool out) {
    for (uint32_t i = 0; i < SLOTS; i++)
        emit_area(x->e, &x->slots[i], slot_at(x, i), SLOT_BYTES, out);
    for (uint32_t i = 0; i < 2 && x->by_array; i++)
        emit_area(x->e, &x->stages[i], stage_at(i), STAGE_BYTES, out);
}

void emit_turned(Emit *e, const Step *s) {
    const Hlo *h = e->l->h;
    const HloOp *op = hlo_at(h, s->op);
    Turning *x = ARENA_NEW(e->c->scratch, Turning);
    *x = (Turning){.e = e, .src = emit_addr(e, e->l->refs.at[s->ins]), .dst = emit_addr(e, e->l->refs.at[s->outs]),
                   .dtype = hlo_value_type(h, op->results)->dtype, .by_array = turn_by_array(e, s)};
    turn_of(h, op, &x->t);
    share_area(x, false);
    if (x->t.narrow) {
        turn_narrow(x);
    } else {
        emit_share(e, x->t.part.n, PARTS, &x->lo, &x->hi);
        turn_wide(x);
    }
    share_area(x, true);
}
