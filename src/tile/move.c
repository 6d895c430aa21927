// SPDX-License-Identifier: Apache-2.0
// move.c — data movement as transfers from HBM to HBM: slices, reversals, concatenations, transposes, broadcasts and pads
// that keep runs of neighbours together, and fills.
//
// An operation is one box of elements per operand with strides on both sides. Axes that go on in one another on both
// sides are joined; a transfer has four, further ones are counted here. Where runs are many and shorter than a descriptor
// is worth the operation stays with GpSimd.
#include <string.h>

#include "pass/rows.h"
#include "tile/area.h"
#include "tile/nest_text.h"

#define RUN_BYTES_MIN 64
#define PAD_RUN_BYTES_MIN 24 // a pad's rows are often short
#define SHORT_RUNS_MAX 2048  // as many take less time than a kernel's start
#define TRANSFERS_MAX 4096
#define FILL_COLS 2048 // elements of a partition that are set once and stored many times
#define FILL_MIN 16384 // elements
#define PAD_COLS 512   // the same for what is around a tensor
#define ROWS_CUT 128   // rows of a shared box are cut at a multiple of it

#define WHOLE ((Span){.dim = -1})
typedef struct Span { // positions [lo, hi) of dimension dim of a result; dim -1: all of it
    int dim;
    int64_t lo, hi;
} Span;

// Elements [first, first + count) of a padded dimension are kept; element i goes to low + i * gap.
static void pad_numbers(const HloOp *op, int dim, int64_t in, int64_t out, Span part, int64_t *low, int64_t *gap, int64_t *first,
                        int64_t *count) {
    int64_t begin = part.dim == dim ? part.lo : 0, end = part.dim == dim ? part.hi : out;
    uint32_t n;
    *low = hlo_ints(op, AK_EDGE_PADDING_LOW, &n)[dim];
    *gap = hlo_ints(op, AK_INTERIOR_PADDING, &n)[dim] + 1;
    *first = *low < begin ? (begin - *low + *gap - 1) / *gap : 0;
    int64_t last = *low < end ? (end - 1 - *low) / *gap : -1;
    *count = (last < in - 1 ? last : in - 1) - *first + 1;
}

// What operand k adds to where the next one of a concatenation begins.
static int64_t box_moves(const Hlo *h, const HloOp *op, uint32_t k) {
    return op->code == HLO_CONCATENATE ? hlo_value_type(h, hlo_operand(h, op, k))->dims[hlo_int(op, AK_DIMENSION, 0)] : 0;
}

// Operand k of the op as a box, of a pad what goes to a part of the result; at: where it begins in a concatenation. False when it is
// not one.
static bool box_of(const Hlo *h, const HloOp *op, uint32_t k, int64_t at, Span part, Nest *b) {
    const HloType *in = hlo_value_type(h, hlo_operand(h, op, k)), *out = hlo_value_type(h, op->results);
    if (in->kind != HT_TENSOR || in->text || out->text || in->dynamic || in->elems < 1 || out->elems < 1 ||
        dtype_row(in->dtype)->bits < 8)
        return false;
    int64_t from[OTRN_MAX_RANK], to[OTRN_MAX_RANK];
    nest_strides(in, from);
    nest_strides(out, to);
    *b = (Nest){.rank = out->rank};
    uint32_t n;
    const int64_t *v;
    for (int i = 0; i < out->rank; i++)
        b->axis[i] = (Axis){out->dims[i], 0, to[i]};
    switch (op->code) {
    case HLO_SLICE: {
        uint32_t ns;
        const int64_t *begin = hlo_ints(op, AK_START_INDICES, &n), *step = hlo_ints(op, AK_STRIDES, &ns);
        for (uint32_t i = 0; i < n; i++) {
            b->src += begin[i] * from[i];
            b->axis[i].src = from[i] * (ns ? step[i] : 1);
        }
        break;
    }
    case HLO_TRANSPOSE:
        v = hlo_ints(op, AK_PERMUTATION, &n);
        for (uint32_t i = 0; i < n; i++)
            b->axis[i].src = from[v[i]];
        break;
    case HLO_BROADCAST_IN_DIM:
        v = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
        for (uint32_t i = 0; i < n; i++)
            b->axis[v[i]].src = in->dims[i] == 1 ? 0 : from[i];
        break;
    case HLO_CONCATENATE: {
        int64_t dim = hlo_int(op, AK_DIMENSION, 0);
        b->dst = at * to[dim];
        for (int i = 0; i < in->rank; i++)
            b->axis[i] = (Axis){in->dims[i], from[i], to[i]};
        break;
    }
    case HLO_REVERSE:
        v = hlo_ints(op, AK_DIMENSIONS, &n);
        for (int i = 0; i < in->rank; i++)
            b->axis[i].src = from[i];
        for (uint32_t i = 0; i < n; i++) {
            b->src += (in->dims[v[i]] - 1) * from[v[i]];
            b->axis[v[i]].src = -from[v[i]];
        }
        break;
    case HLO_PAD: // what of the operand is left
        for (int i = 0; i < in->rank; i++) {
            int64_t low, gap, first, count;
            pad_numbers(op, i, in->dims[i], out->dims[i], part, &low, &gap, &first, &count);
            if (count < 1)
                return false;
            b->src += first * from[i];
            b->dst += (low + first * gap) * to[i];
            b->axis[i] = (Axis){count, from[i], gap * to[i]};
        }
        break;
    default:
        return false;
    }
    nest_join(b);
    return true;
}

// The pad's number is known and can be set in SBUF.
static bool pad_is_known(const Hlo *h, const HloOp *op) {
    const HloType *t = hlo_value_type(h, op->results);
    return splat_value(h, hlo_operand(h, op, 1)) && dtype_bytes(t->dtype) <= 4 && !dtype_is_complex(t->dtype) &&
           t->rank > 0 && t->elems < INT32_MAX;
}

static uint32_t moved_operands(const HloOp *op) { return op->code == HLO_PAD ? 1 : op->noperands; }

static bool refuse_operand(const HloType *t, Why *why) {
    if (t->kind == HT_TENSOR && dtype_row(t->dtype)->bits < 8)
        return why_refuse_type(why, WHY_LACKS, t->dtype);
    return why_refuse(why, t->elems < 1 ? WHY_EMPTY : t->dynamic || t->text ? WHY_SIZES : WHY_RUNS);
}

static bool is_moved(const HloOp *op) {
    switch (op->code) {
    case HLO_SLICE: case HLO_TRANSPOSE: case HLO_BROADCAST_IN_DIM: case HLO_CONCATENATE: case HLO_REVERSE: case HLO_PAD:
        return op->nresults == 1 && op->noperands > 0;
    default:
        return false;
    }
}

bool move_takes(const Lower *l, const HloOp *op, Why *why) {
    const Hlo *h = l->h;
    if (!is_moved(op))
        return false;
    if (op->code == HLO_PAD && !pad_is_known(h, op))
        return why_refuse(why, WHY_PADDING);
    size_t size = dtype_bytes(hlo_value_type(h, op->results)->dtype);
    int64_t least = op->code == HLO_PAD ? PAD_RUN_BYTES_MIN : RUN_BYTES_MIN;
    int64_t at = 0; // in a concatenation
    for (uint32_t k = 0; k < moved_operands(op); at += box_moves(h, op, k++)) {
        Nest b;
        if (!box_of(h, op, k, at, WHOLE, &b))
            return refuse_operand(hlo_value_type(h, hlo_operand(h, op, k)), why);
        const Axis *last = b.rank ? &b.axis[b.rank - 1] : NULL;
        bool runs = !last || (last->src == 1 && last->dst == 1 && last->n * (int64_t)size >= least);
        int64_t transfers = 1, elems = nest_size(&b);
        if (last && last->src == 1 && last->dst == 1)
            elems /= last->n;
        runs = runs || elems <= SHORT_RUNS_MAX;
        for (int i = 0; i < b.rank; i++) {
            runs = runs && b.axis[i].src <= INT32_MAX && b.axis[i].dst <= INT32_MAX && b.axis[i].n < UINT32_MAX / 2;
            transfers *= i + 4 < b.rank ? b.axis[i].n : 1;
        }
        if (!runs || transfers > TRANSFERS_MAX)
            return why_refuse(why, runs ? WHY_TRANSFERS : WHY_RUNS);
    }
    return true;
}

void move_nests(const Hlo *h, const HloOp *op, NestEach *on, void *arg) {
    int64_t at = 0;
    for (uint32_t k = 0; k < moved_operands(op); at += box_moves(h, op, k++)) {
        NestOp n = {.in = {k, k}};
        n.p.stype = n.p.dtype = hlo_value_type(h, op->results)->dtype;
        if (!box_of(h, op, k, at, WHOLE, &n.move))
            continue;
        n.off[0] = n.move.src, n.out_off = n.move.dst;
        on(arg, &n);
    }
}

// A shared box is cut at its outermost axis.
static bool box_share(Emit *e, Nest *b) {
    int64_t lo, hi, n = b->rank ? b->axis[0].n : 1;
    emit_share(e, n, n > ROWS_CUT ? ROWS_CUT : 1, &lo, &hi);
    if (b->rank) {
        b->src += lo * b->axis[0].src, b->dst += lo * b->axis[0].dst;
        b->axis[0].n = hi - lo;
    }
    return hi > lo;
}

// --- pads ----------------------------------------------------------------------------------------------

typedef struct Fill { // a number in SBUF, all partitions, PAD_COLS of it
    Emit *e;
    Ring piece;
    uint64_t dst;
    int dtype;
} Fill;

// Stores the number into a box of HBM: one axis is the partitions, the innermost one a run, two more in the transfer.
static void fill_box(const Fill *f, Nest b) {
    size_t size = dtype_bytes(f->dtype);
    nest_join(&b);
    Axis run = {1, 0, 1};
    if (b.rank && b.axis[b.rank - 1].dst == 1)
        run = b.axis[--b.rank];
    if (run.n > PAD_COLS) { // pieces of a run are an axis of their own
        Nest rest = b;
        rest.dst += run.n / PAD_COLS * PAD_COLS;
        if (run.n % PAD_COLS) {
            rest.axis[rest.rank++] = (Axis){run.n % PAD_COLS, 0, 1};
            fill_box(f, rest);
        }
        b.axis[b.rank++] = (Axis){run.n / PAD_COLS, 0, PAD_COLS};
        run.n = PAD_COLS;
    }
    int parts = -1;
    for (int i = 0; i < b.rank; i++)
        parts = parts < 0 || b.axis[i].n > b.axis[parts].n ? i : parts;
    Axis across = {1, 0, 0};
    if (parts >= 0) {
        across = b.axis[parts];
        memmove(&b.axis[parts], &b.axis[parts + 1], (size_t)(--b.rank - parts) * sizeof *b.axis);
    }
    int outer = b.rank > 2 ? b.rank - 2 : 0;
    int64_t at[OTRN_MAX_RANK] = {0};
    do {
        int64_t none, to;
        nest_at(&b, outer, at, &none, &to);
        Axis two[2] = {{1, 0, 0}, {1, 0, 0}};
        for (int i = outer; i < b.rank; i++)
            two[i - outer] = b.axis[i];
        for (int64_t p = 0; p < across.n; p += PARTITIONS) {
            int64_t parts = across.n - p < PARTITIONS ? across.n - p : PARTITIONS;
            uint64_t far = f->dst + (uint64_t)(to + p * across.dst) * size;
            put_dma(f->e, QUEUE_COPY, VIEW(mem_hbm(far), f->dtype, {parts, across.dst}, {two[0].n, two[0].dst}, {two[1].n, two[1].dst}, {run.n, 1}),
                    VIEW(ring_at(&f->piece, 0), f->dtype, {parts}, {two[0].n, 0}, {two[1].n, 0}, {run.n, 1}));
        }
    } while (nest_next(&b, outer, at));
}

// What lies around the operand: before and after it in each dimension, inside the part that is left of the dimensions
// before. With gaps between elements all of the result is filled first.
static void pad_around(const Fill *f, const Hlo *h, const HloOp *op, Span part) {
    const HloType *in = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results);
    int64_t to[OTRN_MAX_RANK];
    nest_strides(out, to);
    Nest b = {.rank = out->rank};
    bool gaps = false;
    for (int i = 0; i < out->rank; i++) {
        b.axis[i] = (Axis){out->dims[i], 0, to[i]};
        gaps = gaps || hlo_ints(op, AK_INTERIOR_PADDING, &(uint32_t){0})[i] > 0;
    }
    if (part.dim >= 0)
        b.axis[part.dim].n = part.hi - part.lo, b.dst = part.lo * to[part.dim];
    if (gaps) {
        fill_box(f, b);
        return;
    }
    for (int i = 0; i < out->rank; i++) {
        int64_t low, gap, first, count;
        pad_numbers(op, i, in->dims[i], out->dims[i], part, &low, &gap, &first, &count);
        int64_t at = i == part.dim ? part.lo : 0, n = b.axis[i].n; // begin and end: from there
        int64_t begin = count < 1 ? n : low + first - at, end = count < 1 ? n : begin + count;
        Nest side = b;
        if (begin > 0) {
            side.axis[i].n = begin;
            fill_box(f, side);
        }
        if (end < n) {
            side.axis[i].n = n - end;
            side.dst = b.dst + end * to[i];
            fill_box(f, side);
        }
        if (count < 1)
            return;
        b.dst += begin * to[i];
        b.axis[i].n = count;
    }
}

// A shared pad is cut at the outermost dimension of its result.
static Span pad_share(Emit *e, const HloType *out) {
    Span part = WHOLE;
    while (++part.dim < out->rank && out->dims[part.dim] == 1)
        ;
    if (part.dim == out->rank)
        return WHOLE;
    emit_share(e, out->dims[part.dim], out->dims[part.dim] > ROWS_CUT ? ROWS_CUT : 1, &part.lo, &part.hi);
    return part;
}

// A number in all partitions, `cols` times; there is room for `most`.
static Area set_piece(Emit *e, Ring *piece, int dtype, int64_t most, int64_t cols, const void *value) {
    Area area = area_make(e, ROWS_AREA_BEGIN, ROWS_AREA_BEGIN + ROWS_AREA_BYTES);
    area_ring(&area, piece, 1, (uint32_t)(most * (int64_t)dtype_bytes(dtype)));
    area_open(&area);
    put_memset(e, ENG_VECTOR, VIEW(ring_at(piece, 0), dtype, {PARTITIONS}, {cols, 1}), value);
    return area;
}

static void emit_pad(Emit *e, const Step *s, Span part) {
    const Hlo *h = e->l->h;
    const HloOp *op = hlo_at(h, s->op);
    const HloAttr *value = splat_value(h, hlo_operand(h, op, 1));
    int dtype = hlo_value_type(h, op->results)->dtype;
    Fill f = {.e = e, .dst = emit_addr(e, e->l->refs.at[s->outs]), .dtype = dtype};
    Area area = set_piece(e, &f.piece, dtype, PAD_COLS, PAD_COLS, value->data);
    pad_around(&f, h, op, part);
    area_close(&area);
}

void emit_move(Emit *e, const Step *s) {
    const Hlo *h = e->l->h;
    const HloOp *op = hlo_at(h, s->op);
    Span part = op->code == HLO_PAD ? pad_share(e, hlo_value_type(h, op->results)) : WHOLE;
    if (op->code == HLO_PAD)
        emit_pad(e, s, part);
    int64_t at = 0;
    for (uint32_t k = 0; k < moved_operands(op); at += box_moves(h, op, k++)) {
        Nest b;
        if (box_of(h, op, k, at, part, &b) && (op->code == HLO_PAD || box_share(e, &b)))
            nest_put(e, &b, ENG_GPSIMD, QUEUE_COPY, emit_addr(e, e->l->refs.at[s->ins + k]), emit_addr(e, e->l->refs.at[s->outs]),
                     hlo_value_type(h, op->results)->dtype, NULL);
    }
}

bool fill_is_transfer(const HloType *t) {
    return t->elems >= FILL_MIN && dtype_bytes(t->dtype) <= 4 && dtype_row(t->dtype)->bits >= 8 &&
           !dtype_is_complex(t->dtype) && t->elems / PARTITIONS <= INT32_MAX;
}

// A splat: a piece of SBUF is set once, its copies go out.
void emit_fill_transfer(Emit *e, const Step *s) {
    const HloAttr *a = hlo_attr(hlo_at(e->l->h, s->op), AK_VALUE);
    const HloType *t = hlo_type(e->l->h, a->type);
    assert(fill_is_transfer(t));
    int64_t size = (int64_t)dtype_bytes(t->dtype), lo, hi;
    emit_share(e, t->elems, FILL_MIN, &lo, &hi);
    int64_t elems = hi - lo, per = elems / PARTITIONS, full = per / FILL_COLS, left = per % FILL_COLS, rest = elems % PARTITIONS;
    Ring piece;
    Area area = set_piece(e, &piece, t->dtype, FILL_COLS, full ? FILL_COLS : per, a->data); // at least 128: the rest is less
    Mem to = mem_hbm(emit_addr(e, e->l->refs.at[s->outs]) + (uint64_t)(lo * size)), from = ring_at(&piece, 0);
    if (full)
        put_dma(e, QUEUE_ROWS_OUT, VIEW(to, t->dtype, {PARTITIONS, per}, {full, FILL_COLS}, {FILL_COLS, 1}),
                VIEW(from, t->dtype, {PARTITIONS}, {full, 0}, {FILL_COLS, 1}));
    if (left)
        put_dma(e, QUEUE_ROWS_OUT, VIEW(mem_off(to, full * FILL_COLS * size), t->dtype, {PARTITIONS, per}, {left, 1}), VIEW(from, t->dtype, {PARTITIONS}, {left, 1}));
    if (rest)
        put_dma(e, QUEUE_ROWS_OUT, VIEW(mem_off(to, per * PARTITIONS * size), t->dtype, {1}, {rest, 1}), VIEW(from, t->dtype, {1}, {rest, 1}));
    area_close(&area);
}

// A row program that only converts: transfers convert on their way.
bool cast_takes(const Lower *l, const HloOp *op, Why *why) {
    const Hlo *h = l->h;
    (void)why; // a row program does it otherwise
    if (op->code != HLO_ROWS || op->noperands != 1 || op->nresults != 1)
        return false;
    const HloRegion *r = hlo_op_region(h, op, 0);
    const HloType *from = hlo_value_type(h, hlo_operand(h, op, 0)), *to = hlo_value_type(h, op->results);
    bool types = (from->dtype == DT_F32 && (to->dtype == DT_BF16 || to->dtype == DT_F16)) ||
                 (to->dtype == DT_F32 && (from->dtype == DT_BF16 || from->dtype == DT_F16));
    return types && r->ops.n == 2 && hlo_at(h, r->ops.at[0])->code == HLO_CONVERT && from->elems == to->elems &&
           hlo_operand(h, hlo_at(h, r->ops.at[0]), 0) == r->args &&
           hlo_operand(h, hlo_at(h, r->ops.at[1]), 0) == hlo_at(h, r->ops.at[0])->results;
}

#define CAST_RUN 8192 // elements of a row, and rows of a transfer
#define CAST_ROWS 128

void emit_cast(Emit *e, const Step *s) {
    const Hlo *h = e->l->h;
    const HloOp *op = hlo_at(h, s->op);
    const HloType *from = hlo_value_type(h, hlo_operand(h, op, 0)), *to = hlo_value_type(h, op->results);
    assert(from->elems == to->elems);
    assert(cast_takes(e->l, op, NULL));
    int64_t cols = to->rank > 1 && to->elems ? to->dims[to->rank - 1] : 1, at, end;
    emit_share(e, to->elems / cols, to->elems / cols > CAST_ROWS ? CAST_ROWS : 1, &at, &end);
    for (at *= cols, end *= cols; at < end;) {
        int64_t left = end - at, run = left < CAST_RUN ? left : CAST_RUN;
        int64_t rows = left / run < CAST_ROWS ? left / run : CAST_ROWS;
        uint64_t src = emit_addr(e, e->l->refs.at[s->ins]) + (uint64_t)at * dtype_bytes(from->dtype);
        uint64_t dst = emit_addr(e, e->l->refs.at[s->outs]) + (uint64_t)at * dtype_bytes(to->dtype);
        emit_task(e);
        put_dma(e, QUEUE_CAST, VIEW(mem_hbm(dst), to->dtype, {rows, run}, {run, 1}), VIEW(mem_hbm(src), from->dtype, {rows, run}, {run, 1}));
        at += rows * run;
    }
}
