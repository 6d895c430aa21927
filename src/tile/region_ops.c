// SPDX-License-Identifier: Apache-2.0
// region_ops.c — small tensors inside a region: ops that only say which element goes where, and ops that
// become a few steps per element.
//
// An index known only at run time becomes a chain of selections over the elements it could mean, so the cost
// is that of a small tensor, which is what stands in regions.
#include "tile/region.h"

#include <assert.h>
#include <string.h>

#include "hlo/dot.h"
#include "hlo/eval.h"

RShape region_shape(const Region *p, ValueId v) {
    const HloType *t = hlo_value_type(p->h, v);
    if (t->kind != HT_TENSOR || t->dynamic || t->text)
        hlo_fail(p->h, p->op, OTRN_UNSUPPORTED, "its region works on values that are no plain tensors");
    if (t->elems > REGION_VALUES_MAX)
        hlo_fail(p->h, p->op, OTRN_CAPACITY, "its region has more than %d values", REGION_VALUES_MAX);
    RShape s = {.rank = t->rank, .elems = t->elems};
    if (t->rank)
        memcpy(s.dims, t->dims, t->rank * sizeof *s.dims);
    return s;
}

void region_place(const RShape *s, int64_t lin, int64_t *at) {
    for (int d = s->rank - 1; d >= 0; d--) {
        at[d] = lin % s->dims[d];
        lin /= s->dims[d];
    }
}

int64_t region_number(const RShape *s, const int64_t *at) {
    int64_t lin = 0;
    for (int d = 0; d < s->rank; d++)
        lin = lin * s->dims[d] + at[d];
    return lin;
}

bool region_next(const RShape *s, int64_t *at) {
    for (int d = s->rank - 1; d >= 0; d--) {
        if (++at[d] < s->dims[d])
            return true;
        at[d] = 0;
    }
    return false;
}

static int type_of(const Region *p, ValueId v) { return hlo_value_type(p->h, v)->dtype; }

const uint16_t *region_operand(Region *p, const HloOp *op, uint32_t i) {
    return region_slots(p, hlo_operand(p->h, op, i));
}

uint16_t region_select(Region *p, uint16_t test, uint16_t yes, uint16_t no) {
    return yes == no ? no : region_step(p, HLO_SELECT, p->dtypes.at[no], test, yes, no);
}

uint16_t region_as(Region *p, uint16_t reg, int dtype) {
    return p->dtypes.at[reg] == dtype ? reg : region_step(p, HLO_CONVERT, dtype, reg, 0, 0);
}

static bool among(const int64_t *list, uint32_t n, int64_t v, uint32_t *at) {
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == v) {
            *at = i;
            return true;
        }
    return false;
}

// --- which element goes where ------------------------------------------------------------------------

// Values that the program knows.
static void add_known(Region *p, OpId id) {
    ValueId v = hlo_at(p->h, id)->results;
    RShape s = region_shape(p, v);
    Tensor value;
    bool known = eval_op(p->h, p->c->scratch, id, NULL, &value);
    assert(known);
    (void)known;
    uint16_t *regs = region_regs(p, (uint32_t)s.elems);
    for (int64_t i = 0; i < s.elems; i++)
        regs[i] = region_const(p, type_of(p, v), (const char *)value.data + (size_t)i * dtype_bytes(type_of(p, v)));
    region_bind(p, v, regs);
}

// A byte of the registers' numbers in the place of the elements.
static Tensor numbers(Region *p, ValueId v, int byte) {
    RShape s = region_shape(p, v);
    size_t size = dtype_bytes(type_of(p, v));
    uint8_t *data = ARENA_NEWN(p->c->scratch, uint8_t, (size_t)s.elems * size + 1);
    for (int64_t i = 0; i < s.elems; i++)
        data[(size_t)i * size] = (uint8_t)(region_slots(p, v)[i] >> 8 * byte);
    return (Tensor){p->h->values.at[v].type, data};
}

// Slices, transposes, pads …: the evaluator moves the numbers of registers as it would move what they hold, whatever its type.
static void add_move(Region *p, OpId id) {
    HloOp op = *hlo_at(p->h, id);
    RShape s = region_shape(p, op.results);
    size_t size = dtype_bytes(type_of(p, op.results));
    uint16_t *regs = region_regs(p, (uint32_t)s.elems);
    Tensor *in = ARENA_NEWN(p->c->scratch, Tensor, op.noperands + 1), out;
    for (int byte = 0; byte < 2; byte++) {
        for (uint32_t k = 0; k < op.noperands; k++)
            in[k] = numbers(p, hlo_operand(p->h, &op, k), byte);
        bool moved = eval_op(p->h, p->c->scratch, id, in, &out);
        assert(moved);
        (void)moved;
        for (int64_t i = 0; i < s.elems; i++)
            regs[i] |= (uint16_t)(((const uint8_t *)out.data)[(size_t)i * size] << 8 * byte);
    }
    region_bind(p, op.results, regs);
}

// --- indices of run time -----------------------------------------------------------------------------

// The start along an axis, brought into 0..limit.
static uint16_t clamped(Region *p, uint16_t start, int64_t limit) {
    if (dtype_row(p->dtypes.at[start])->bits < 32) // the limit may not fit
        start = region_step(p, HLO_CONVERT, DT_I32, start, 0, 0);
    int dtype = p->dtypes.at[start];
    uint16_t zero = region_const_int(p, dtype, 0), most = region_const_int(p, dtype, limit);
    return region_step(p, HLO_CLAMP, dtype, zero, start, most);
}

// And over the axes: start[d] is at[d]. -1: an axis without a start must be at 0.
static int starts_at(Region *p, const int *start, const int64_t *at, int rank) {
    int all = -1;
    for (int d = 0; d < rank; d++) {
        if (start[d] < 0)
            continue;
        uint16_t reg = (uint16_t)start[d];
        uint16_t here = region_compare(p, CMP_EQ, reg, region_const_int(p, p->dtypes.at[reg], at[d]));
        all = all < 0 ? here : region_step(p, HLO_AND, DT_I1, (uint16_t)all, here, 0);
    }
    return all;
}

// The operand's element at start + offset, when start along axis d may be 0..limit[d].
static uint16_t pick(Region *p, const uint16_t *src, const RShape *in, const int *start,
                     const int64_t *limit, const int64_t *offset) {
    RShape choices = {.rank = in->rank};
    int64_t at[OTRN_MAX_RANK] = {0}, from[OTRN_MAX_RANK];
    for (int d = 0; d < in->rank; d++)
        choices.dims[d] = start[d] < 0 ? 1 : limit[d] + 1;
    uint16_t value = src[region_number(in, offset)];
    while (region_next(&choices, at)) {
        for (int d = 0; d < in->rank; d++)
            from[d] = at[d] + offset[d];
        int here = starts_at(p, start, at, in->rank);
        value = region_select(p, (uint16_t)here, src[region_number(in, from)], value);
    }
    return value;
}

static void add_dynamic_slice(Region *p, const HloOp *op) {
    RShape in = region_shape(p, hlo_operand(p->h, op, 0)), out = region_shape(p, op->results);
    int start[OTRN_MAX_RANK];
    int64_t limit[OTRN_MAX_RANK], at[OTRN_MAX_RANK];
    for (int d = 0; d < in.rank; d++) {
        limit[d] = in.dims[d] - out.dims[d];
        start[d] = limit[d] ? clamped(p, region_operand(p, op, 1 + (uint32_t)d)[0], limit[d]) : -1;
    }
    uint16_t *regs = region_regs(p, (uint32_t)out.elems);
    for (int64_t i = 0; i < out.elems; i++) {
        region_place(&out, i, at);
        regs[i] = pick(p, region_operand(p, op, 0), &in, start, limit, at);
    }
    region_bind(p, op->results, regs);
}

static void add_dynamic_update(Region *p, const HloOp *op) {
    RShape in = region_shape(p, hlo_operand(p->h, op, 0)), part = region_shape(p, hlo_operand(p->h, op, 1));
    const uint16_t *update = region_operand(p, op, 1);
    uint16_t *regs = region_regs(p, (uint32_t)in.elems);
    RShape choices = {.rank = in.rank};
    int start[OTRN_MAX_RANK];
    int64_t at[OTRN_MAX_RANK] = {0}, offset[OTRN_MAX_RANK], to[OTRN_MAX_RANK];
    memcpy(regs, region_operand(p, op, 0), (size_t)in.elems * sizeof *regs);
    for (int d = 0; d < in.rank; d++) {
        choices.dims[d] = in.dims[d] - part.dims[d] + 1;
        start[d] = choices.dims[d] > 1
                       ? clamped(p, region_operand(p, op, 2 + (uint32_t)d)[0], choices.dims[d] - 1)
                       : -1;
    }
    do {
        int here = starts_at(p, start, at, in.rank);
        for (int64_t i = 0; i < part.elems; i++) {
            region_place(&part, i, offset);
            for (int d = 0; d < in.rank; d++)
                to[d] = at[d] + offset[d];
            int64_t k = region_number(&in, to);
            regs[k] = here < 0 ? update[i] : region_select(p, (uint16_t)here, update[i], regs[k]);
        }
    } while (region_next(&choices, at));
    region_bind(p, op->results, regs);
}

Places region_places(Region *p, const HloOp *op, const IndexKeys *keys, ValueId index, ValueId windows) {
    Places s = {.whole = region_shape(p, hlo_operand(p->h, op, 0)), .index = region_shape(p, index), .windows = region_shape(p, windows),
                .vector_dim = hlo_int(op, AK_INDEX_VECTOR_DIM, 0), .indices = region_slots(p, index)};
    s.window = hlo_ints(op, keys->window, &s.nwindow);
    s.gone = hlo_ints(op, keys->gone, &s.ngone);
    s.batching = hlo_ints(op, keys->batching, &s.nbatching);
    s.index_batching = hlo_ints(op, keys->index_batching, &s.nindex_batching);
    s.map = hlo_ints(op, keys->map, &s.nmap);
    return s;
}

void region_places_at(const Places *s, const int64_t *to, int *start, int64_t *more) {
    int64_t at[OTRN_MAX_RANK];
    int from = 0;
    uint32_t k, axis = 0;
    for (int d = 0; d < s->windows.rank; d++) {
        if (among(s->window, s->nwindow, d, &k))
            continue;
        from += from == s->vector_dim;
        at[from++] = to[d];
    }
    for (int d = 0; d < s->whole.rank; d++) {
        start[d] = -1;
        more[d] = among(s->batching, s->nbatching, d, &k) ? at[s->index_batching[k]]
                  : among(s->gone, s->ngone, d, &k)       ? 0
                                                                 : to[s->window[axis++]];
    }
    for (uint32_t i = 0; i < s->nmap; i++) {
        if (s->vector_dim < s->index.rank)
            at[s->vector_dim] = i;
        start[s->map[i]] = s->indices[region_number(&s->index, at)];
    }
}

static void add_gather(Region *p, const HloOp *op) {
    Places s = region_places(p, op, &index_of_gather, hlo_operand(p->h, op, 1), op->results);
    uint32_t n;
    const int64_t *sizes = hlo_ints(op, AK_SLICE_SIZES, &n);
    uint16_t *regs = region_regs(p, (uint32_t)s.windows.elems);
    for (int64_t i = 0; i < s.windows.elems; i++) {
        int64_t to[OTRN_MAX_RANK], limit[OTRN_MAX_RANK], offset[OTRN_MAX_RANK];
        int start[OTRN_MAX_RANK];
        region_place(&s.windows, i, to);
        region_places_at(&s, to, start, offset);
        for (uint32_t k = 0; k < s.nmap; k++) {
            int64_t d = s.map[k];
            limit[d] = s.whole.dims[d] - sizes[d];
            start[d] = limit[d] ? clamped(p, (uint16_t)start[d], limit[d]) : -1;
        }
        regs[i] = pick(p, region_operand(p, op, 0), &s.whole, start, limit, offset);
    }
    region_bind(p, op->results, regs);
}

// --- combining ---------------------------------------------------------------------------------------

Fold region_fold(Region *p, uint32_t n, int64_t elems) {
    Fold f = {.n = n, .args = ARENA_NEWN(p->c->scratch, const uint16_t *, 2 * n + 1), .next = ARENA_NEWN(p->c->scratch, const uint16_t *, n + 1),
              .regs = ARENA_NEWN(p->c->scratch, uint16_t *, n + 1)};
    for (uint32_t k = 0; k < n; k++)
        f.regs[k] = region_regs(p, (uint32_t)elems);
    return f;
}

void region_fold_in(Region *p, const Fold *f, const HloOp *op, int64_t at) {
    for (uint32_t k = 0; k < f->n; k++)
        f->args[k] = &f->regs[k][at];
    region_inline(p, p->h->op_regions.at[op->regions], f->args, f->next);
    for (uint32_t k = 0; k < f->n; k++)
        f->regs[k][at] = f->next[k][0];
}

void region_fold_end(Region *p, const Fold *f, const HloOp *op) {
    for (uint32_t k = 0; k < f->n; k++)
        region_bind(p, op->results + k, f->regs[k]);
}

static void add_map(Region *p, const HloOp *op) {
    RShape out = region_shape(p, op->results);
    const uint16_t **args = ARENA_NEWN(p->c->scratch, const uint16_t *, op->noperands + 1), *result;
    uint16_t *regs = region_regs(p, (uint32_t)out.elems);
    for (int64_t i = 0; i < out.elems; i++) {
        for (uint32_t k = 0; k < op->noperands; k++)
            args[k] = region_operand(p, op, k) + i;
        region_inline(p, p->h->op_regions.at[op->regions], args, &result);
        regs[i] = result[0];
    }
    region_bind(p, op->results, regs);
}

// sort: neighbours change places while the second comes before the first, which keeps equal ones in order.
static void sort_pair(Region *p, const HloOp *op, uint16_t **regs, int64_t a, int64_t b) {
    const uint16_t **args = ARENA_NEWN(p->c->scratch, const uint16_t *, 2 * op->noperands + 1), *less;
    for (uint32_t k = 0; k < op->noperands; k++) {
        args[2 * k] = &regs[k][b];
        args[2 * k + 1] = &regs[k][a];
    }
    region_inline(p, p->h->op_regions.at[op->regions], args, &less);
    for (uint32_t k = 0; k < op->noperands; k++) {
        uint16_t first = regs[k][a], second = regs[k][b];
        regs[k][a] = region_select(p, less[0], second, first);
        regs[k][b] = region_select(p, less[0], first, second);
    }
}

static void add_sort(Region *p, const HloOp *op) {
    RShape s = region_shape(p, op->results);
    int64_t axis = hlo_int(op, AK_DIMENSION, -1), stride = 1, at[OTRN_MAX_RANK];
    axis += axis < 0 ? s.rank : 0;
    for (int d = s.rank - 1; d > axis; d--)
        stride *= s.dims[d];
    Fold f = region_fold(p, op->noperands, s.elems);
    for (uint32_t k = 0; k < op->noperands; k++)
        memcpy(f.regs[k], region_operand(p, op, k), (size_t)s.elems * sizeof **f.regs);
    for (int64_t i = 0; i < s.elems; i++) {
        region_place(&s, i, at);
        if (at[axis])
            continue;
        for (int64_t end = s.dims[axis] - 1; end > 0; end--)
            for (int64_t j = 0; j < end; j++)
                sort_pair(p, op, f.regs, i + j * stride, i + (j + 1) * stride);
    }
    region_fold_end(p, &f, op);
}

// dot_general: products and sums in the result's type, at least f32, k ascending.
static void add_dot(Region *p, const HloOp *op) {
    DotDims by = dot_dims(op);
    const int64_t *lc = by.contract[0], *rc = by.contract[1];
    RShape l = region_shape(p, hlo_operand(p->h, op, 0)), r = region_shape(p, hlo_operand(p->h, op, 1));
    RShape out = region_shape(p, op->results), inner = {.rank = (int)by.nc};
    int dtype = type_of(p, op->results), wide = dtype;
    if (dtype_is_float(dtype) && dtype_row(dtype)->bits < 32)
        wide = DT_F32;
    for (uint32_t i = 0; i < by.nc; i++)
        inner.dims[i] = l.dims[lc[i]];
    uint16_t *regs = region_regs(p, (uint32_t)out.elems);
    for (int64_t e = 0; e < out.elems; e++) {
        int64_t to[OTRN_MAX_RANK], a[OTRN_MAX_RANK], b[OTRN_MAX_RANK], k[OTRN_MAX_RANK] = {0};
        uint32_t next = by.nb;
        region_place(&out, e, to);
        for (uint32_t i = 0; i < by.nb; i++)
            a[by.batch[0][i]] = b[by.batch[1][i]] = to[i];
        for (int d = 0; d < l.rank; d++)
            if (!hlo_among(by.batch[0], by.nb, d) && !hlo_among(lc, by.nc, d))
                a[d] = to[next++];
        for (int d = 0; d < r.rank; d++)
            if (!hlo_among(by.batch[1], by.nb, d) && !hlo_among(rc, by.nc, d))
                b[d] = to[next++];
        bool more = l.elems > 0;
        uint16_t sum = region_const_int(p, wide, 0);
        for (bool first = true; more; more = region_next(&inner, k), first = false) {
            for (uint32_t i = 0; i < by.nc; i++)
                a[lc[i]] = b[rc[i]] = k[i];
            uint16_t x = region_as(p, region_operand(p, op, 0)[region_number(&l, a)], wide);
            uint16_t y = region_as(p, region_operand(p, op, 1)[region_number(&r, b)], wide);
            uint16_t product = region_step(p, HLO_MULTIPLY, wide, x, y, 0);
            sum = first ? product : region_step(p, HLO_ADD, wide, sum, product, 0);
        }
        regs[e] = region_as(p, sum, dtype);
    }
    region_bind(p, op->results, regs);
}

bool region_tensor_op(Region *p, OpId id) {
    HloOp op = *hlo_at(p->h, id);
    switch (op.code) {
    case HLO_CONSTANT:
    case HLO_IOTA: add_known(p, id); return true;
    case HLO_OPTIMIZATION_BARRIER:
    case HLO_RESHAPE: // the same elements under another name
        for (uint32_t i = 0; i < op.nresults; i++)
            region_bind(p, op.results + i, region_operand(p, &op, i));
        return true;
    case HLO_BROADCAST_IN_DIM:
    case HLO_BROADCAST:
    case HLO_TRANSPOSE:
    case HLO_REVERSE:
    case HLO_SLICE:
    case HLO_CONCATENATE:
    case HLO_PAD: add_move(p, id); return true;
    case HLO_DYNAMIC_SLICE: add_dynamic_slice(p, &op); return true;
    case HLO_DYNAMIC_UPDATE_SLICE: add_dynamic_update(p, &op); return true;
    case HLO_GATHER: add_gather(p, &op); return true;
    case HLO_MAP: add_map(p, &op); return true;
    case HLO_SORT: add_sort(p, &op); return true;
    case HLO_DOT_GENERAL: add_dot(p, &op); return true;
    default: return region_window_op(p, id);
    }
}
