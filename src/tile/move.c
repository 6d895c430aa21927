// SPDX-License-Identifier: Apache-2.0
// move.c — data movement as transfers from HBM to HBM: slices, reversals, concatenations, transposes, broadcasts and pads
// that keep runs of neighbours together, and fills.
//
// An operation is one box of elements per operand with strides on both sides. Axes that go on in one another on both
// sides are joined; a transfer has four, further ones are counted here. Where runs are many and shorter than a descriptor
// is worth the operation stays with GpSimd.
#include <string.h>

#include "pass/rows.h"
#include "tile/emit.h"

#define RUN_BYTES_MIN 64
#define PAD_RUN_BYTES_MIN 24 // a pad's rows are often short
#define SHORT_RUNS_MAX 2048  // as many take less time than a kernel's start
#define TRANSFERS_MAX 4096
#define FILL_COLS 2048 // elements of a partition that are set once and stored many times
#define FILL_MIN 16384 // elements
#define FILL_PARTS 128
#define PAD_COLS 512   // the same for what is around a tensor
#define ROWS_CUT 128   // rows of a shared box are cut at a multiple of it

typedef struct Axis {
    int64_t n, src, dst;
} Axis;

typedef struct Box {
    Axis axis[OTRN_MAX_RANK];
    int rank;
    int64_t src, dst; // offsets, all in elements
} Box;

static void strides_of(const HloType *t, int64_t *out) {
    int64_t s = 1;
    for (int i = t->rank; i-- > 0; s *= t->dims[i])
        out[i] = s;
}

// Drops axes of one element and joins those that continue each other.
static void box_join(Box *b) {
    int n = 0;
    for (int i = 0; i < b->rank; i++) {
        Axis a = b->axis[i];
        if (a.n == 1)
            continue;
        if (n && b->axis[n - 1].src == a.src * a.n && b->axis[n - 1].dst == a.dst * a.n) {
            a.n *= b->axis[n - 1].n;
            b->axis[n - 1] = a;
        } else {
            b->axis[n++] = a;
        }
    }
    b->rank = n;
}

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
static bool box_of(const Hlo *h, const HloOp *op, uint32_t k, int64_t at, Span part, Box *b) {
    const HloType *in = hlo_value_type(h, hlo_operand(h, op, k)), *out = hlo_value_type(h, op->results);
    if (in->kind != HT_TENSOR || in->text || out->text || in->dynamic || in->elems < 1 || out->elems < 1 ||
        dtype_row(in->dtype)->bits < 8)
        return false;
    int64_t from[OTRN_MAX_RANK], to[OTRN_MAX_RANK];
    strides_of(in, from);
    strides_of(out, to);
    *b = (Box){.rank = out->rank};
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
    box_join(b);
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

bool move_is_transfer(const Hlo *h, const HloOp *op, Why *why) {
    if (!is_moved(op))
        return false;
    if (op->code == HLO_PAD && !pad_is_known(h, op))
        return why_refuse(why, WHY_PADDING);
    size_t size = dtype_bytes(hlo_value_type(h, op->results)->dtype);
    int64_t least = op->code == HLO_PAD ? PAD_RUN_BYTES_MIN : RUN_BYTES_MIN;
    int64_t at = 0; // in a concatenation
    for (uint32_t k = 0; k < moved_operands(op); at += box_moves(h, op, k++)) {
        Box b;
        if (!box_of(h, op, k, at, WHOLE, &b))
            return refuse_operand(hlo_value_type(h, hlo_operand(h, op, k)), why);
        const Axis *last = b.rank ? &b.axis[b.rank - 1] : NULL;
        bool runs = !last || (last->src == 1 && last->dst == 1 && last->n * (int64_t)size >= least);
        int64_t transfers = 1, elems = 1;
        for (int i = 0; i < b.rank; i++)
            elems *= b.axis[i].n;
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

// A shared box is cut at its outermost axis.
static bool box_share(Emit *e, Box *b) {
    int64_t lo, hi, n = b->rank ? b->axis[0].n : 1;
    emit_share(e, n, n > ROWS_CUT ? ROWS_CUT : 1, &lo, &hi);
    if (b->rank) {
        b->src += lo * b->axis[0].src, b->dst += lo * b->axis[0].dst;
        b->axis[0].n = hi - lo;
    }
    return hi > lo;
}

static void emit_box(Emit *e, const Box *b, BufId src, BufId dst, int dtype) {
    int outer = b->rank > 4 ? b->rank - 4 : 0;
    int64_t at[OTRN_MAX_RANK] = {0};
    for (bool more = true; more;) {
        IsaInst in = {.op = ISA_DMA, .engine = ENG_GPSIMD, .queue = QUEUE_COPY, .stype = (uint8_t)dtype};
        int64_t from = b->src, to = b->dst;
        for (int i = 0; i < outer; i++) {
            from += at[i] * b->axis[i].src;
            to += at[i] * b->axis[i].dst;
        }
        for (int i = outer, k = 4 - (b->rank - outer); i < b->rank; i++, k++) {
            in.n[k] = (uint32_t)b->axis[i].n;
            in.s[k] = (int32_t)b->axis[i].src;
            in.d[k] = (int32_t)b->axis[i].dst;
        }
        in.src = emit_addr(e, src) + (uint64_t)from * dtype_bytes(dtype);
        in.dst = emit_addr(e, dst) + (uint64_t)to * dtype_bytes(dtype);
        emit_inst(e, in, NULL, 0, NULL, 0);
        more = false;
        for (int i = outer; i-- > 0 && !more;) {
            more = ++at[i] < b->axis[i].n;
            at[i] = more ? at[i] : 0;
        }
    }
}

// --- pads ----------------------------------------------------------------------------------------------

typedef struct Fill { // a number in SBUF, all partitions, PAD_COLS of it
    Emit *e;
    Haz *haz;
    uint64_t dst;
    int dtype;
} Fill;

// Stores the number into a box of HBM: one axis is the partitions, the innermost one a run, two more in the transfer.
static void fill_box(const Fill *f, Box b) {
    size_t size = dtype_bytes(f->dtype);
    box_join(&b);
    Axis run = {1, 0, 1};
    if (b.rank && b.axis[b.rank - 1].dst == 1)
        run = b.axis[--b.rank];
    if (run.n > PAD_COLS) { // pieces of a run are an axis of their own
        Box rest = b;
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
    for (bool more = true; more;) {
        int64_t to = b.dst;
        for (int i = 0; i < outer; i++)
            to += at[i] * b.axis[i].dst;
        IsaInst in = {.op = ISA_DMA, .engine = ENG_GPSIMD, .queue = QUEUE_COPY, .stype = (uint8_t)f->dtype,
                      .src = addr_sbuf(0, ROWS_AREA_BEGIN)};
        for (int i = outer, k = 3 - (b.rank - outer); i < b.rank; i++, k++)
            in.n[k] = (uint32_t)b.axis[i].n, in.d[k] = (int32_t)b.axis[i].dst;
        in.n[3] = (uint32_t)run.n, in.d[3] = in.s[3] = 1;
        in.d[0] = (int32_t)across.dst;
        for (int64_t p = 0; p < across.n; p += FILL_PARTS) {
            in.n[0] = (uint32_t)(across.n - p < FILL_PARTS ? across.n - p : FILL_PARTS);
            in.dst = f->dst + (uint64_t)(to + p * across.dst) * size;
            emit_inst(f->e, in, &f->haz, 1, NULL, 0);
        }
        more = false;
        for (int i = outer; i-- > 0 && !more;) {
            more = ++at[i] < b.axis[i].n;
            at[i] = more ? at[i] : 0;
        }
    }
}

// What lies around the operand: before and after it in each dimension, inside the part that is left of the dimensions
// before. With gaps between elements all of the result is filled first.
static void pad_around(const Fill *f, const Hlo *h, const HloOp *op, Span part) {
    const HloType *in = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results);
    int64_t to[OTRN_MAX_RANK];
    strides_of(out, to);
    Box b = {.rank = out->rank};
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
        Box side = b;
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

static void emit_pad(Emit *e, const Step *s, Span part) {
    const Hlo *h = e->l->h;
    const HloOp *op = hlo_at(h, s->op);
    const HloAttr *value = splat_value(h, hlo_operand(h, op, 1));
    int dtype = hlo_value_type(h, op->results)->dtype;
    size_t size = dtype_bytes(dtype);
    Fill f = {.e = e, .haz = ARENA_NEW(e->c->scratch, Haz), .dst = emit_addr(e, e->l->refs.at[s->outs]), .dtype = dtype};
    emit_area(e, f.haz, ROWS_AREA_BEGIN, (uint32_t)(PAD_COLS * size), false);
    IsaInst set = {.op = ISA_MEMSET, .engine = ENG_VECTOR, .dst = addr_sbuf(0, ROWS_AREA_BEGIN), .dtype = (uint8_t)dtype};
    memcpy(&set.imm, value->data, size);
    set.n[0] = FILL_PARTS, set.n[1] = PAD_COLS, set.d[1] = 1;
    emit_inst(e, set, NULL, 0, &f.haz, 1);
    pad_around(&f, h, op, part);
    emit_area(e, f.haz, ROWS_AREA_BEGIN, (uint32_t)(PAD_COLS * size), true);
}

void emit_move(Emit *e, const Step *s) {
    const Hlo *h = e->l->h;
    const HloOp *op = hlo_at(h, s->op);
    Span part = op->code == HLO_PAD ? pad_share(e, hlo_value_type(h, op->results)) : WHOLE;
    if (op->code == HLO_PAD)
        emit_pad(e, s, part);
    int64_t at = 0;
    for (uint32_t k = 0; k < moved_operands(op); at += box_moves(h, op, k++)) {
        Box b;
        if (box_of(h, op, k, at, part, &b) && (op->code == HLO_PAD || box_share(e, &b)))
            emit_box(e, &b, e->l->refs.at[s->ins + k], e->l->refs.at[s->outs], hlo_value_type(h, op->results)->dtype);
    }
}

bool fill_is_transfer(const HloType *t) {
    return t->elems >= FILL_MIN && dtype_bytes(t->dtype) <= 4 && dtype_row(t->dtype)->bits >= 8 &&
           !dtype_is_complex(t->dtype) && t->elems / FILL_PARTS <= INT32_MAX;
}

// A splat: a piece of SBUF is set once, its copies go out.
void emit_fill_transfer(Emit *e, const Step *s) {
    const HloAttr *a = hlo_attr(hlo_at(e->l->h, s->op), AK_VALUE);
    const HloType *t = hlo_type(e->l->h, a->type);
    size_t size = dtype_bytes(t->dtype);
    BufId dst = e->l->refs.at[s->outs];
    Haz *piece = ARENA_NEW(e->c->scratch, Haz);
    emit_area(e, piece, ROWS_AREA_BEGIN, (uint32_t)(FILL_COLS * size), false);
    IsaInst set = {.op = ISA_MEMSET, .engine = ENG_VECTOR, .dst = addr_sbuf(0, ROWS_AREA_BEGIN), .dtype = t->dtype};
    memcpy(&set.imm, a->data, size);
    int64_t lo, hi;
    emit_share(e, t->elems, FILL_MIN, &lo, &hi);
    int64_t elems = hi - lo, per = elems / FILL_PARTS, full = per / FILL_COLS, left = per % FILL_COLS, rest = elems % FILL_PARTS;
    set.n[0] = FILL_PARTS, set.n[1] = (uint32_t)(full ? FILL_COLS : per), set.d[1] = 1; // at least 128: the rest is less
    emit_inst(e, set, NULL, 0, &piece, 1);
    IsaInst out = {.op = ISA_DMA, .engine = ENG_GPSIMD, .queue = QUEUE_ROWS_OUT, .stype = t->dtype,
                   .src = addr_sbuf(0, ROWS_AREA_BEGIN)};
    uint64_t to = emit_addr(e, dst) + (uint64_t)lo * size;
    out.n[0] = FILL_PARTS, out.d[0] = (int32_t)per;
    out.d[2] = out.s[2] = 1;
    if (full) {
        out.dst = to;
        out.n[1] = (uint32_t)full, out.d[1] = FILL_COLS, out.n[2] = FILL_COLS;
        emit_inst(e, out, &piece, 1, NULL, 0);
    }
    out.n[1] = 1, out.d[1] = 0;
    if (left) {
        out.dst = to + (uint64_t)(full * FILL_COLS) * size;
        out.n[2] = (uint32_t)left;
        emit_inst(e, out, &piece, 1, NULL, 0);
    }
    if (rest) {
        out.dst = to + (uint64_t)(per * FILL_PARTS) * size;
        out.n[0] = 1, out.d[0] = 0, out.n[2] = (uint32_t)rest;
        emit_inst(e, out, &piece, 1, NULL, 0);
    }
    emit_area(e, piece, ROWS_AREA_BEGIN, (uint32_t)(FILL_COLS * size), true);
}

// A row program that only converts: transfers convert on their way.
bool rows_is_cast(const Hlo *h, const HloOp *op) {
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
    int64_t cols = to->rank > 1 && to->elems ? to->dims[to->rank - 1] : 1, at, end;
    emit_share(e, to->elems / cols, to->elems / cols > CAST_ROWS ? CAST_ROWS : 1, &at, &end);
    for (at *= cols, end *= cols; at < end;) {
        int64_t left = end - at, run = left < CAST_RUN ? left : CAST_RUN;
        int64_t rows = left / run < CAST_ROWS ? left / run : CAST_ROWS;
        IsaInst in = {.op = ISA_DMA, .engine = ENG_SYNC, .queue = QUEUE_CAST, .stype = from->dtype, .dtype = to->dtype};
        in.src = emit_addr(e, e->l->refs.at[s->ins]) + (uint64_t)at * dtype_bytes(from->dtype);
        in.dst = emit_addr(e, e->l->refs.at[s->outs]) + (uint64_t)at * dtype_bytes(to->dtype);
        in.n[0] = (uint32_t)rows, in.n[1] = (uint32_t)run;
        in.d[0] = in.s[0] = (int32_t)run, in.d[1] = in.s[1] = 1;
        emit_task(e);
        emit_inst(e, in, NULL, 0, NULL, 0);
        at += rows * run;
    }
}
