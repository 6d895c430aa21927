// SPDX-License-Identifier: Apache-2.0
// picks.c — a loss picks one score of each row and its gradient places one: neither needs a tensor of scores for that.
// needs: values defined before use
// gives: a gather of one element a row stands before the elementwise work it can stand before; rows that hold one number
//        are scaled and summed by that number
// stale: nothing (dce drops what became unused)
//
//   gather(x - broadcast(s), at)       ──►  gather(x, at) - s
//   scatter(0, at, u) * broadcast(v)   ──►  scatter(0, at, u * v)
//   sum(scatter(0, at, u)) along rows  ──►  u, or 0 where `at` is outside
//
// PyTorch's cross entropy and its gradient are written so. This stands before spmd: where rows are cut over devices each of the
// left sides meets once more, and the pick waits for the sum that the scores are divided by.
#include "pass/rules.h"

#define DEPTH_MAX 4

static bool ascends(const int64_t *dims, uint32_t n) {
    for (uint32_t i = 1; i < n; i++)
        if (dims[i] <= dims[i - 1])
            return false;
    return true;
}

// The dimension rows lie along, when the op takes or puts one element of each row, in the order of rows; else -1.
static int row_dim(const HloOp *op, const IndexKeys *x, const HloType *whole, const HloType *part) {
    uint32_t nwindow, ngone, nbatch, nat, nmap;
    hlo_ints(op, x->window, &nwindow);
    const int64_t *gone = hlo_ints(op, x->gone, &ngone), *map = hlo_ints(op, x->map, &nmap);
    const int64_t *batch = hlo_ints(op, x->batching, &nbatch), *at = hlo_ints(op, x->index_batching, &nat);
    if (nwindow || ngone != 1 || nmap != 1 || map[0] != gone[0] || whole->rank < 2 || nbatch + 1 != (uint32_t)whole->rank)
        return -1;
    bool fits = ascends(batch, nbatch) && ascends(at, nat) && part->elems * whole->dims[gone[0]] == whole->elems;
    return fits ? (int)gone[0] : -1;
}

// A value that is the same along rows, as one element a row; 0: it may differ.
static ValueId per_row(Walk *w, ValueId v, int dim, TypeId type) {
    Hlo *h = w->hlo;
    const HloOp *op = hlo_def_as(h, v, HLO_BROADCAST_IN_DIM);
    HloType whole = *hlo_value_type(h, v);
    if (!op || !hlo_has_elems(hlo_value_type(h, hlo_operand(h, op, 0))))
        return 0;
    v = hlo_operand(h, op, 0);
    HloType t = *hlo_value_type(h, v);
    uint32_t n, m = 0;
    const int64_t *dims = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    int64_t to[OTRN_MAX_RANK], size[OTRN_MAX_RANK], rows[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < n; i++) {
        if (t.dims[i] == 1)
            continue;
        if (dims[i] == dim || (m && dims[i] - (dims[i] > dim) <= to[m - 1]))
            return 0;
        to[m] = dims[i] - (dims[i] > dim);
        size[m++] = t.dims[i];
    }
    for (int i = 0, k = 0; i < whole.rank; i++)
        if (i != dim)
            rows[k++] = whole.dims[i];
    TypeId wide = hlo_type_tensor(h, t.dtype, whole.rank - 1, rows);
    v = walk_reshape(w, v, (int)m, size);
    return walk_shape(w, h->values.at[v].type == wide ? v : walk_broadcast(w, v, to, m, wide), type);
}

// --- picking ---------------------------------------------------------------------------------------

static bool is_arithmetic(const HloOp *op) {
    return op->code == HLO_ADD || op->code == HLO_SUBTRACT || op->code == HLO_MULTIPLY || op->code == HLO_DIVIDE;
}

static ValueId picked(Walk *w, const HloOp *gather, ValueId v, int dim, int depth) { // gather: a copy
    Hlo *h = w->hlo;
    TypeId type = h->values.at[gather->results].type;
    const HloOp *def = hlo_def(h, v);
    for (uint32_t k = 0; def && is_arithmetic(def) && depth < DEPTH_MAX && k < 2; k++) {
        HloOp work = *def;
        ValueId row = per_row(w, hlo_operand(h, &work, k), dim, type);
        if (!row)
            continue;
        ValueId x = picked(w, gather, hlo_operand(h, &work, !k), dim, depth + 1);
        return walk_push(w, hlo_op_like(h, &work, (ValueId[]){k ? x : row, k ? row : x}, type));
    }
    return depth ? walk_push(w, hlo_op_like(h, gather, (ValueId[]){v, hlo_operand(h, gather, 1)}, type)) : 0;
}

static ValueId pick_first(Walk *w, const HloOp *op) {
    const HloType *whole = hlo_value_type(w->hlo, hlo_operand(w->hlo, op, 0));
    int dim = row_dim(op, &index_of_gather, whole, hlo_value_type(w->hlo, op->results));
    return dim < 0 || !dtype_is_float(whole->dtype) ? 0 : picked(w, op, hlo_operand(w->hlo, op, 0), dim, 0);
}

// --- placing ---------------------------------------------------------------------------------------

static bool is_zero(const Hlo *h, ValueId v) {
    const HloOp *op = hlo_def_as(h, v, HLO_BROADCAST_IN_DIM);
    return splat_is_zero(h, op ? hlo_operand(h, op, 0) : v);
}

// The scatter that makes rows of zeros with one number in each, and the dimension rows lie along; NULL: none.
static const HloOp *placed(const Hlo *h, ValueId v, int *dim) {
    const HloOp *op = hlo_def_as(h, v, HLO_SCATTER);
    if (!op || op->noperands != 3 || !is_zero(h, hlo_operand(h, op, 0)))
        return NULL;
    const HloRegion *r = hlo_op_region(h, op, 0);
    bool puts = r->ops.n == 1 && hlo_operand(h, region_return(h, r), 0) == r->args + 1, adds = region_combiner(h, r) == HLO_ADD;
    *dim = row_dim(op, &index_of_scatter, hlo_value_type(h, v), hlo_value_type(h, hlo_operand(h, op, 2)));
    return (puts || adds) && *dim >= 0 ? op : NULL;
}

static ValueId scale_placed(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    for (uint32_t k = 0; k < 2; k++) {
        ValueId v = hlo_operand(h, op, k);
        int dim;
        const HloOp *def = walk_uses(w, v) == 1 ? placed(h, v, &dim) : NULL;
        if (!def)
            continue;
        HloOp scatter = *def;
        ValueId u = hlo_operand(h, &scatter, 2), row = per_row(w, hlo_operand(h, op, !k), dim, h->values.at[u].type);
        if (!row)
            continue;
        ValueId in[3] = {hlo_operand(h, &scatter, 0), hlo_operand(h, &scatter, 1), walk_binary(w, HLO_MULTIPLY, k ? row : u, k ? u : row)};
        OpId made = hlo_op_like(h, &scatter, in, h->values.at[v].type);
        hlo_op_add_combiner(h, made, HLO_ADD, hlo_type_tensor(h, hlo_value_type(h, v)->dtype, 0, NULL));
        return walk_push(w, made);
    }
    return 0;
}

static ValueId sum_placed(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    int dim;
    uint32_t n;
    const int64_t *over = hlo_ints(op, AK_DIMENSIONS, &n);
    const HloOp *def = reduce_body(h, op) == HLO_ADD && is_zero(h, hlo_operand(h, op, 1)) ? placed(h, hlo_operand(h, op, 0), &dim) : NULL;
    if (!def || n != 1 || over[0] != dim)
        return 0;
    TypeId type = h->values.at[op->results].type;
    HloType t = *hlo_type(h, type);
    ValueId u = hlo_operand(h, def, 2), at = hlo_operand(h, def, 1);
    int64_t size = hlo_value_type(h, hlo_operand(h, op, 0))->dims[dim];
    at = walk_reshape(w, at, t.rank, t.dims);
    TypeId index = h->values.at[at].type;
    ValueId in[3] = {walk_number(w, index, 0), at, walk_number(w, index, (double)(size - 1))};
    ValueId inside = walk_compare(w, CMP_EQ, CMPT_NOTYPE, walk_op(w, HLO_CLAMP, 3, in, index), at);
    return walk_select(w, inside, walk_shape(w, u, type), walk_number(w, type, 0));
}

const Rule picks_rules[] = {
    {"gather of one a row, of x + - * / broadcast(v): the same of what was gathered and v", HLO_GATHER, RULE_EXACT, pick_first},
    {"scatter(0, one a row) * broadcast(v): scatter(0, that times v)", HLO_MULTIPLY, RULE_ORDER, scale_placed},
    {"sum of rows of scatter(0, one a row): that one, inside", HLO_REDUCE, RULE_ZERO, sum_placed},
    {0},
};

void pass_picks(Compile *c) {
    Walk w;
    walk_init(&w, c);
    walk_note_uses(&w, 0);
    rules_walk(&w, picks_rules);
}
