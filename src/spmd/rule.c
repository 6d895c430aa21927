// SPDX-License-Identifier: Apache-2.0
// rule.c — one small function per family of ops says which dimensions go together (rule.h).
#include "spmd/rule.h"

#include <assert.h>
#include <string.h>

#include "hlo/query.h"

typedef struct Make {
    const Hlo *h;
    const HloOp *op;
    Rule *r;
    int16_t *of;
} Make;

typedef void RuleFn(Make *m);

static const HloType *tensor(const Make *m, uint32_t t) {
    ValueId v = t < m->op->noperands ? hlo_operand(m->h, m->op, t) : m->op->results + (t - m->op->noperands);
    return hlo_value_type(m->h, v);
}
static uint32_t first_result(const Make *m) { return m->op->noperands; }
static int64_t size_of(const Make *m, uint32_t t, int64_t dim) { return tensor(m, t)->dims[dim]; }

static int factor(Make *m, FactorKind kind) {
    if (m->r->nfactors == RULE_FACTORS_MAX)
        return -1;
    m->r->kind[m->r->nfactors] = (uint8_t)kind;
    return (int)m->r->nfactors++;
}

static void put(Make *m, int f, uint32_t t, int64_t dim) {
    assert(t < m->r->ntensors && f < (int)m->r->nfactors);
    if (f >= 0 && dim >= 0 && dim < tensor(m, t)->rank)
        m->of[(size_t)t * OTRN_MAX_RANK + (size_t)dim] = (int16_t)f;
}

static bool has(const int64_t *list, uint32_t n, int64_t v) {
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == v)
            return true;
    return false;
}

// --- families ------------------------------------------------------------------------------------------

// Every tensor of the result's rank runs along all dimensions; scalars go along.
static void rule_elementwise(Make *m) {
    uint32_t out = first_result(m), rank = tensor(m, out)->rank;
    for (uint32_t d = 0; d < rank; d++) {
        int f = factor(m, FACTOR_KEEP);
        for (uint32_t t = 0; t < m->r->ntensors; t++)
            if (tensor(m, t)->rank == rank)
                put(m, f, t, d);
    }
}

static void rule_bits(Make *m) {
    if (tensor(m, 0)->rank == tensor(m, 1)->rank)
        rule_elementwise(m);
}

static void rule_iota(Make *m) {
    for (uint32_t d = 0; d < tensor(m, 0)->rank; d++)
        put(m, factor(m, FACTOR_KEEP), 0, d);
}

static void rule_broadcast(Make *m) {
    uint32_t n;
    const int64_t *dims = hlo_ints(m->op, AK_BROADCAST_DIMENSIONS, &n);
    for (uint32_t d = 0; d < tensor(m, 1)->rank; d++) {
        int f = factor(m, FACTOR_KEEP);
        put(m, f, 1, d);
        for (uint32_t i = 0; i < n; i++)
            if (dims[i] == d && size_of(m, 0, i) == size_of(m, 1, d))
                put(m, f, 0, i);
    }
}

static void rule_transpose(Make *m) {
    uint32_t n;
    const int64_t *order = hlo_ints(m->op, AK_PERMUTATION, &n);
    for (uint32_t d = 0; d < n; d++) {
        int f = factor(m, FACTOR_KEEP);
        put(m, f, 1, d);
        put(m, f, 0, order[d]);
    }
}

// Groups of dimensions with the same number of elements stand for each other; the slowest dimension of each group
// cuts both into the same blocks.
static void rule_reshape(Make *m) {
    const HloType *in = tensor(m, 0), *out = tensor(m, 1);
    if (!in->elems)
        return;
    int i = 0, o = 0;
    for (;;) {
        while (i < in->rank && in->dims[i] == 1)
            i++;
        while (o < out->rank && out->dims[o] == 1)
            o++;
        if (i == in->rank || o == out->rank)
            return;
        int f = factor(m, FACTOR_KEEP);
        put(m, f, 0, i);
        put(m, f, 1, o);
        int64_t a = in->dims[i++], b = out->dims[o++];
        while (a != b) {
            if (a < b && i < in->rank)
                a *= in->dims[i++];
            else if (b < a && o < out->rank)
                b *= out->dims[o++];
            else
                return;
        }
    }
}

// The combiner when a region of two arguments is just that.
static bool region_combines(const Make *m, uint32_t region, FactorKind *kind) {
    const HloRegion *r = hlo_op_region(m->h, m->op, region);
    uint16_t code = region_combiner(m->h, r);
    const HloType *t = code ? hlo_value_type(m->h, r->args) : NULL;
    if (!code || t->dtype == DT_I1 || dtype_is_complex(t->dtype))
        return false;
    *kind = code == HLO_ADD ? FACTOR_ADD : code == HLO_MAXIMUM ? FACTOR_MAX : FACTOR_MIN;
    return code == HLO_ADD || code == HLO_MAXIMUM || code == HLO_MINIMUM;
}

// A constant of zeros, also behind a broadcast or a conversion.
static bool is_zero(const Hlo *h, ValueId v) {
    for (int depth = 0; depth < 4 && h->values.at[v].def; depth++) {
        const HloOp *op = hlo_at(h, h->values.at[v].def);
        if (op->code == HLO_BROADCAST_IN_DIM || op->code == HLO_CONVERT || op->code == HLO_RESHAPE) {
            v = hlo_operand(h, op, 0);
            continue;
        }
        const HloAttr *a = op->code == HLO_CONSTANT ? hlo_attr(op, AK_VALUE) : NULL;
        if (!a || a->kind != HA_TENSOR)
            return false;
        for (uint32_t i = 0; i < a->n; i++)
            if (((const uint8_t *)a->data)[i])
                return false;
        return true;
    }
    return false;
}

static void rule_reduce(Make *m) {
    uint32_t n, inputs = m->op->noperands / 2, out = first_result(m), kept = 0;
    const int64_t *dims = hlo_ints(m->op, AK_DIMENSIONS, &n);
    FactorKind kind = FACTOR_ADD;
    bool sums = inputs == 1 && region_combines(m, 0, &kind) &&
                (kind != FACTOR_ADD || is_zero(m->h, hlo_operand(m->h, m->op, 1)));
    for (uint32_t d = 0; d < tensor(m, 0)->rank; d++) {
        bool reduced = has(dims, n, d);
        int f = !reduced ? factor(m, FACTOR_KEEP) : sums ? factor(m, kind) : -1;
        for (uint32_t i = 0; i < inputs; i++) {
            put(m, f, i, d);
            if (!reduced)
                put(m, f, out + i, kept);
        }
        kept += !reduced;
    }
}

static void rule_dot(Make *m) {
    uint32_t nb, nc, n, at = 0;
    const int64_t *lb = hlo_ints(m->op, AK_LHS_BATCHING_DIMENSIONS, &nb), *rb = hlo_ints(m->op, AK_RHS_BATCHING_DIMENSIONS, &n);
    const int64_t *lc = hlo_ints(m->op, AK_LHS_CONTRACTING_DIMENSIONS, &nc), *rc = hlo_ints(m->op, AK_RHS_CONTRACTING_DIMENSIONS, &n);
    bool sums = !dtype_is_complex(tensor(m, 2)->dtype) && tensor(m, 2)->dtype != DT_I1;
    for (uint32_t i = 0; i < nb; i++) {
        int f = factor(m, FACTOR_KEEP);
        put(m, f, 0, lb[i]);
        put(m, f, 1, rb[i]);
        put(m, f, 2, at++);
    }
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t d = 0; d < tensor(m, side)->rank; d++)
            if (!has(side ? rb : lb, nb, d) && !has(side ? rc : lc, nc, d)) {
                int f = factor(m, FACTOR_KEEP);
                put(m, f, side, d);
                put(m, f, 2, at++);
            }
    for (uint32_t i = 0; i < nc && sums; i++) {
        int f = factor(m, FACTOR_ADD);
        put(m, f, 0, lc[i]);
        put(m, f, 1, rc[i]);
    }
}

static void rule_convolution(Make *m) {
    if (hlo_int(m->op, AK_BATCH_GROUP_COUNT, 1) != 1 || hlo_int(m->op, AK_FEATURE_GROUP_COUNT, 1) != 1)
        return;
    int batch = factor(m, FACTOR_KEEP), in = factor(m, FACTOR_ADD), out = factor(m, FACTOR_KEEP);
    put(m, batch, 0, hlo_int(m->op, AK_INPUT_BATCH_DIMENSION, -1));
    put(m, batch, 2, hlo_int(m->op, AK_OUTPUT_BATCH_DIMENSION, -1));
    put(m, out, 1, hlo_int(m->op, AK_KERNEL_OUTPUT_FEATURE_DIMENSION, -1));
    put(m, out, 2, hlo_int(m->op, AK_OUTPUT_FEATURE_DIMENSION, -1));
    if (dtype_is_complex(tensor(m, 2)->dtype))
        return;
    put(m, in, 0, hlo_int(m->op, AK_INPUT_FEATURE_DIMENSION, -1));
    put(m, in, 1, hlo_int(m->op, AK_KERNEL_INPUT_FEATURE_DIMENSION, -1));
}

// All tensors run along all dimensions but one.
static void rule_but_one(Make *m) {
    int64_t without = hlo_int(m->op, AK_DIMENSION, 0);
    for (uint32_t d = 0; d < tensor(m, 0)->rank; d++) {
        int f = d == without ? -1 : factor(m, FACTOR_KEEP);
        for (uint32_t t = 0; t < m->r->ntensors; t++)
            put(m, f, t, d);
    }
}

static void rule_top_k(Make *m) {
    for (int d = 0; d + 1 < tensor(m, 0)->rank; d++) {
        int f = factor(m, FACTOR_KEEP);
        for (uint32_t t = 0; t < m->r->ntensors; t++)
            put(m, f, t, d);
    }
}

// Movement that leaves a dimension as it is: the same size, and nothing shifted. Tensors of the first `n` operands
// and the results.
static void along_full(Make *m, uint32_t n) {
    uint32_t out = first_result(m);
    for (uint32_t d = 0; d < tensor(m, 0)->rank; d++) {
        bool full = true;
        for (uint32_t t = 0; t < n; t++)
            full &= size_of(m, t, d) == size_of(m, out, d);
        int f = full ? factor(m, FACTOR_KEEP) : -1;
        for (uint32_t t = 0; t < n; t++)
            put(m, f, t, d);
        put(m, f, out, d);
    }
}

static void rule_slice(Make *m) { along_full(m, 1); } // of the full size: start 0, stride 1
static void rule_update(Make *m) { along_full(m, 2); }

static void rule_pad(Make *m) {
    uint32_t n;
    const int64_t *low = hlo_ints(m->op, AK_EDGE_PADDING_LOW, &n), *high = hlo_ints(m->op, AK_EDGE_PADDING_HIGH, &n);
    const int64_t *interior = hlo_ints(m->op, AK_INTERIOR_PADDING, &n);
    for (uint32_t d = 0; d < n; d++) {
        bool full = !low[d] && !high[d] && !interior[d];
        int f = full ? factor(m, FACTOR_KEEP) : -1;
        put(m, f, 0, d);
        put(m, f, 2, d);
    }
}

static void rule_reverse(Make *m) {
    uint32_t n;
    const int64_t *dims = hlo_ints(m->op, AK_DIMENSIONS, &n);
    for (uint32_t d = 0; d < tensor(m, 0)->rank; d++) {
        int f = has(dims, n, d) ? -1 : factor(m, FACTOR_KEEP);
        put(m, f, 0, d);
        put(m, f, 1, d);
    }
}

// Windows of one element in steps of one leave a dimension as it is.
static void rule_window(Make *m, uint32_t tensors, uint32_t skipped) {
    uint32_t nw, ns, n;
    const int64_t *window = hlo_ints(m->op, AK_WINDOW_DIMENSIONS, &nw), *stride = hlo_ints(m->op, AK_WINDOW_STRIDES, &ns);
    const HloAttr *pads = hlo_attr(m->op, AK_PADDING);
    const int64_t *base = hlo_ints(m->op, AK_BASE_DILATIONS, &n);
    for (uint32_t d = 0; d < nw; d++) {
        bool plain = window[d] == 1 && (!ns || stride[d] == 1) && (!n || base[d] == 1) &&
                     (!pads || !pads->n || (!pads->ints[2 * d] && !pads->ints[2 * d + 1]));
        int f = plain ? factor(m, FACTOR_KEEP) : -1;
        for (uint32_t t = 0; t < tensors; t++)
            put(m, f, t, d);
        for (uint32_t t = tensors + skipped; t < m->r->ntensors; t++)
            put(m, f, t, d);
    }
}
static void rule_reduce_window(Make *m) { rule_window(m, m->op->noperands / 2, m->op->noperands / 2); }
static void rule_select_scatter(Make *m) { rule_window(m, 2, 1); }

// Dimension number `i` of those that are not in the list.
static int64_t other_dim(uint32_t rank, const int64_t *list, uint32_t n, uint32_t i) {
    for (uint32_t d = 0; d < rank; d++)
        if (!has(list, n, d) && i-- == 0)
            return d;
    return -1;
}

typedef struct Indexed { // gather, and scatter as its mirror
    uint32_t whole, indices, window;     // tensors: operand, indices, slices or updates
    HloAttrKey window_dims, dropped_dims, whole_batch, indices_batch, map;
    FactorKind kind; // of dimensions of the indices
    bool along;      // those dimensions may be cut at all
    FactorKind picked; // of the dimension they speak of
} Indexed;

// Indices of one number each, for a dimension of which one row is taken: every part answers for its own rows.
static void rule_picked(Make *m, const Indexed *x, const int64_t *dropped, uint32_t nd) {
    uint32_t n;
    const int64_t *map = hlo_ints(m->op, x->map, &n);
    const HloType *indices = tensor(m, x->indices);
    int dtype = tensor(m, x->whole)->dtype;
    bool sums = x->picked == FACTOR_KEEP || (dtype != DT_I1 && !dtype_is_complex(dtype));
    if (n != 1 || !has(dropped, nd, map[0]) || !sums || dtype_row(indices->dtype)->bits < 32 ||
        size_of(m, x->whole, map[0]) > INT32_MAX)
        return;
    m->r->picked = factor(m, x->picked);
    put(m, m->r->picked, x->whole, map[0]);
}

static void rule_indexed(Make *m, const Indexed *x) {
    uint32_t nw, nd, nb, n, batch = 0;
    const int64_t *win = hlo_ints(m->op, x->window_dims, &nw), *dropped = hlo_ints(m->op, x->dropped_dims, &nd);
    const int64_t *wb = hlo_ints(m->op, x->whole_batch, &nb), *ib = hlo_ints(m->op, x->indices_batch, &n);
    int64_t vector = hlo_int(m->op, AK_INDEX_VECTOR_DIM, -1);
    uint32_t out_rank = tensor(m, x->window)->rank;
    for (uint32_t d = 0; d < tensor(m, x->indices)->rank; d++) {
        if (d == vector)
            continue;
        int64_t place = other_dim(out_rank, win, nw, batch++);
        int64_t paired = -1;
        for (uint32_t i = 0; i < nb; i++)
            if (ib[i] == d)
                paired = wb[i];
        int f = paired >= 0 ? factor(m, FACTOR_KEEP) : x->along ? factor(m, x->kind) : -1;
        put(m, f, x->indices, d);
        put(m, f, x->window, place);
        if (paired >= 0)
            put(m, f, x->whole, paired);
    }
    for (uint32_t d = 0, i = 0; d < tensor(m, x->whole)->rank; d++) {
        if (has(dropped, nd, d) || has(wb, nb, d))
            continue;
        int64_t place = i < nw ? win[i] : -1;
        i++;
        if (place < 0 || place >= out_rank || size_of(m, x->whole, d) != size_of(m, x->window, place))
            continue;
        int f = factor(m, FACTOR_KEEP);
        put(m, f, x->whole, d);
        put(m, f, x->window, place);
    }
    rule_picked(m, x, dropped, nd);
}

static void rule_gather(Make *m) {
    rule_indexed(m, &(Indexed){0, 1, 2, AK_OFFSET_DIMS, AK_COLLAPSED_SLICE_DIMS, AK_OPERAND_BATCHING_DIMS,
                               AK_START_INDICES_BATCHING_DIMS, AK_START_INDEX_MAP, FACTOR_KEEP, true, FACTOR_ADD});
}

// Updates that are cut along the indices are terms of what is added to the operand.
static void rule_scatter(Make *m) {
    if (m->op->noperands != 3)
        return;
    FactorKind kind = FACTOR_ADD;
    bool sums = region_combines(m, 0, &kind) && kind == FACTOR_ADD;
    rule_indexed(m, &(Indexed){0, 1, 2, AK_UPDATE_WINDOW_DIMS, AK_INSERTED_WINDOW_DIMS, AK_INPUT_BATCHING_DIMS,
                               AK_SCATTER_INDICES_BATCHING_DIMS, AK_SCATTER_DIMS_TO_OPERAND_DIMS, FACTOR_ADD, sums,
                               FACTOR_KEEP});
    for (uint32_t d = 0; d < tensor(m, 0)->rank; d++) // the result is the operand's shape
        put(m, rule_factor(m->r, 0, d), 3, d);
    m->r->ninto = 1;
}

// --- the table -----------------------------------------------------------------------------------------

static RuleFn *find(const HloOp *op) {
    switch ((HloOpcode)op->code) {
    case HLO_IOTA:
        return rule_iota;
    case HLO_BITCAST_CONVERT:
        return rule_bits;
    case HLO_BROADCAST_IN_DIM:
        return rule_broadcast;
    case HLO_TRANSPOSE:
        return rule_transpose;
    case HLO_RESHAPE:
        return rule_reshape;
    case HLO_REDUCE:
        return rule_reduce;
    case HLO_DOT_GENERAL:
        return rule_dot;
    case HLO_CONVOLUTION:
        return rule_convolution;
    case HLO_CONCATENATE:
    case HLO_SORT:
        return rule_but_one;
    case HLO_CHLO_TOP_K:
        return rule_top_k;
    case HLO_SLICE:
    case HLO_DYNAMIC_SLICE:
        return rule_slice;
    case HLO_DYNAMIC_UPDATE_SLICE:
        return rule_update;
    case HLO_PAD:
        return rule_pad;
    case HLO_REVERSE:
        return rule_reverse;
    case HLO_REDUCE_WINDOW:
        return rule_reduce_window;
    case HLO_SELECT_AND_SCATTER:
        return rule_select_scatter;
    case HLO_GATHER:
        return rule_gather;
    case HLO_SCATTER:
        return rule_scatter;
    default:
        return hlo_row(op)->cls <= HC_EW3 && op->nresults == 1 ? rule_elementwise : NULL;
    }
}

bool rule_of(Arena *a, const Hlo *h, const HloOp *op, Rule *out) {
    RuleFn *fn = find(op);
    *out = (Rule){.ntensors = op->noperands + op->nresults, .picked = -1};
    if (!fn)
        return false;
    Make m = {.h = h, .op = op, .r = out};
    for (uint32_t t = 0; t < out->ntensors; t++) // an encoding or a quantised type may speak of dimensions
        if (tensor(&m, t)->kind != HT_TENSOR || tensor(&m, t)->text || tensor(&m, t)->dynamic)
            return false;
    m.of = ARENA_NEWN(a, int16_t, (size_t)out->ntensors * OTRN_MAX_RANK + 1);
    memset(m.of, 0xff, (size_t)out->ntensors * OTRN_MAX_RANK * sizeof *m.of);
    out->of = m.of;
    fn(&m);
    assert(out->nfactors <= RULE_FACTORS_MAX && out->picked < (int)out->nfactors && out->ninto <= op->noperands);
    return true;
}
