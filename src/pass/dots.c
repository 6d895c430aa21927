// SPDX-License-Identifier: Apache-2.0
// dots.c — bring matrix products into the form the tensor engine takes.
// needs: values defined before use
// gives: every product the tensor engine can do is a dot_general with operands of one type, in which the
//        batch dimensions come as they are and the free and the contracting dimensions of each operand
//        collapse to one stride each
// stale: nothing
//
// A group of dimensions collapses when each one's stride is the next one's stride times its size. Where a
// group does not, a transpose puts the operand into [batch, free, contracting] or [batch, contracting, free] order, and a
// reshape is not needed: strides tell. Products of other types (integers, f64, complex) are left for GpSimd.
#include <string.h>

#include "hlo/dot.h"
#include "pass/rules.h"

static void set_iota(Hlo *h, OpId op, HloAttrKey key, int64_t first, uint32_t n) {
    int64_t v[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < n; i++)
        v[i] = first + i;
    hlo_set_ints(h, op, key, v, n);
}

static int64_t strided(const HloType *t, const int64_t *dims, uint32_t n) {
    int64_t size, stride;
    return dot_group(t, dims, n, &size, &stride) ? 0 : t->elems;
}

// The contracting dimensions are pairs in any order: the one in which the operands, or the larger of them, need not be transposed.
static void order_pairs(Hlo *h, OpId id) {
    const HloAttrKey *keys = dot_contract_key;
    HloOp op = *hlo_at(h, id);
    uint32_t n;
    const int64_t *now[2] = {hlo_ints(&op, keys[0], &n), hlo_ints(&op, keys[1], &n)};
    const HloType *t[2] = {hlo_value_type(h, hlo_operand(h, &op, 0)), hlo_value_type(h, hlo_operand(h, &op, 1))};
    int64_t best = strided(t[0], now[0], n) + strided(t[1], now[1], n), to[2][OTRN_MAX_RANK];
    for (int by = 0; by < 2 && best; by++) { // as they lie in one of them
        for (int side = 0; side < 2; side++)
            memcpy(to[side], now[side], n * sizeof *to[side]);
        for (uint32_t i = 1; i < n; i++)
            for (uint32_t k = i; k > 0 && to[by][k] < to[by][k - 1]; k--)
                for (int side = 0; side < 2; side++) {
                    int64_t swap = to[side][k];
                    to[side][k] = to[side][k - 1];
                    to[side][k - 1] = swap;
                }
        int64_t cost = strided(t[0], to[0], n) + strided(t[1], to[1], n);
        if (cost < best) {
            best = cost;
            hlo_set_ints(h, id, keys[0], to[0], n);
            hlo_set_ints(h, id, keys[1], to[1], n);
        }
    }
}

// Transposes one operand to [batch, free, contracting] when its groups do not collapse, or to [batch, contracting, free], which
// keeps neighbours together that are free.
static void order_operand(Walk *w, OpId id, bool rhs) {
    Hlo *h = w->hlo;
    HloOp op = *hlo_at(h, id);
    uint32_t nb, nc;
    const int64_t *b = hlo_ints(&op, dot_batch_key[rhs], &nb), *c = hlo_ints(&op, dot_contract_key[rhs], &nc);
    ValueId v = hlo_operand(h, &op, rhs);
    HloType t = *hlo_value_type(h, v);
    int64_t free_dims[OTRN_MAX_RANK], size, stride;
    uint32_t nf = dot_free_dims(&t, &op, rhs, free_dims);
    if (dot_group(&t, free_dims, nf, &size, &stride) && dot_group(&t, c, nc, &size, &stride))
        return;
    int64_t perm[OTRN_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < nb; i++)
        perm[n++] = b[i];
    bool last = nf && free_dims[nf - 1] == t.rank - 1;
    for (uint32_t i = 0; i < nc && last; i++)
        perm[n++] = c[i];
    for (uint32_t i = 0; i < nf; i++)
        perm[n++] = free_dims[i];
    for (uint32_t i = 0; i < nc && !last; i++)
        perm[n++] = c[i];
    assert(n == t.rank);
    ValueId ordered = walk_push(w, hlo_op_transpose(h, op.loc, v, perm)); // first: it may move the table of operands
    h->operands.at[op.operands + rhs] = ordered;
    set_iota(h, id, dot_batch_key[rhs], 0, nb);
    set_iota(h, id, dot_contract_key[rhs], last ? nb : nb + nf, nc);
    const HloType *now = hlo_value_type(h, ordered);
    c = hlo_ints(hlo_at(h, id), dot_contract_key[rhs], &nc);
    assert(dot_group(now, c, nc, &size, &stride)); // what it was for
    assert(now->elems == t.elems);
    (void)now, (void)c;
}

static bool only_moves(const HloOp *op) {
    return op && (op->code == HLO_RESHAPE || op->code == HLO_TRANSPOSE || op->code == HLO_BROADCAST_IN_DIM);
}

// The half type that fp32 numbers were widened from, through what only moves them; 0: none.
static int widened_from(const Hlo *h, ValueId v) {
    const HloOp *op = hlo_def(h, v);
    while (only_moves(op))
        op = hlo_def(h, hlo_operand(h, op, 0));
    int from = op && op->code == HLO_CONVERT ? hlo_value_type(h, hlo_operand(h, op, 0))->dtype : 0;
    return hlo_value_type(h, v)->dtype == DT_F32 && (from == DT_BF16 || from == DT_F16) ? from : 0;
}

static ValueId narrow(Walk *w, ValueId v) {
    Hlo *h = w->hlo;
    const HloOp *op = hlo_def(h, v);
    if (op->code == HLO_CONVERT)
        return hlo_operand(h, op, 0);
    HloOp moves = *op;
    HloType t = *hlo_value_type(h, v);
    ValueId x = narrow(w, hlo_operand(h, &moves, 0));
    return walk_push(w, hlo_op_like(h, &moves, &x, hlo_type_tensor(h, hlo_value_type(h, x)->dtype, t.rank, t.dims)));
}

// A product of numbers that were widened is one of the narrow ones: their products are exact in fp32, where both are summed.
static void unwiden(Walk *w, OpId id) {
    Hlo *h = w->hlo;
    HloOp op = *hlo_at(h, id);
    int from = widened_from(h, hlo_operand(h, &op, 0));
    if (!from || from != widened_from(h, hlo_operand(h, &op, 1)) || !dot_may_swap(h, &op))
        return;
    for (uint32_t i = 0; i < 2; i++) {
        ValueId v = narrow(w, hlo_operand(h, &op, i));
        h->operands.at[op.operands + i] = v; // after the call: a new op may move the table
    }
}

static void canon(Walk *w, OpId id) {
    Hlo *h = w->hlo;
    if (!dot_on_tensor_engine(h, hlo_at(h, id)))
        return;
    unwiden(w, id);
    HloOp op = *hlo_at(h, id);
    bool mixed = hlo_value_type(h, hlo_operand(h, &op, 0))->dtype != hlo_value_type(h, hlo_operand(h, &op, 1))->dtype;
    for (uint32_t i = 0; i < 2 && mixed; i++) { // the array takes one type: widen both, which loses nothing
        ValueId wide = walk_convert(w, hlo_operand(h, &op, i), DT_F32);
        h->operands.at[op.operands + i] = wide; // after the call: a new op may move the table
    }
    assert(hlo_value_type(h, hlo_operand(h, hlo_at(h, id), 0))->dtype == hlo_value_type(h, hlo_operand(h, hlo_at(h, id), 1))->dtype);
    hlo_op_own_attrs(h, id);
    order_pairs(h, id);
    order_operand(w, id, false);
    order_operand(w, id, true);
}

static ValueId canon_general(Walk *w, const HloOp *op) {
    (void)op;
    canon(w, w->id);
    return 0;
}

// stablehlo.dot is a dot_general over the last dimension of lhs and the first of rhs.
static ValueId canon_dot(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    ValueId l = hlo_operand(h, op, 0), r = hlo_operand(h, op, 1);
    int64_t last = hlo_value_type(h, l)->rank - 1, first = 0;
    DotPairs by = {.nc = 1, .lc = &last, .rc = &first};
    OpId made = hlo_op_dot(h, op->loc, l, r, by, h->values.at[op->results].type, hlo_attr(op, AK_PRECISION_CONFIG));
    walk_grow(w);
    canon(w, made);
    return walk_push(w, made);
}

// The array adds up in fp32 whatever the product's type is, and what takes the sums rounds them.
static ValueId narrow_product(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    ValueId v = hlo_operand(h, op, 0);
    const HloOp *turn = walk_uses(w, v) == 1 ? hlo_def_as(h, v, HLO_TRANSPOSE) : NULL;
    v = turn ? hlo_operand(h, turn, 0) : v;
    const HloOp *dot = walk_uses(w, v) == 1 ? hlo_def_as(h, v, HLO_DOT_GENERAL) : NULL;
    int to = hlo_value_type(h, op->results)->dtype;
    if (!dot || hlo_value_type(h, v)->dtype != DT_F32 || !dot_on_tensor_engine(h, dot) || hlo_value_type(h, hlo_operand(h, dot, 0))->dtype != to)
        return 0;
    HloOp was = *dot, then = turn ? *turn : *dot;
    ValueId in[2] = {hlo_operand(h, dot, 0), hlo_operand(h, dot, 1)};
    v = walk_push(w, hlo_op_like(h, &was, in, hlo_type_as(h, h->values.at[v].type, to)));
    return turn ? walk_push(w, hlo_op_like(h, &then, &v, h->values.at[op->results].type)) : v;
}

const Rule dots_rules[] = {
    {"dot: dot_general", HLO_DOT, RULE_ORDER, canon_dot},
    {"dot_general: operands of one type, narrow if they were widened, each of whose groups of dimensions has one stride", HLO_DOT_GENERAL, RULE_ORDER, canon_general},
    {"narrow(product of narrow operands, fp32), transposed perhaps: the product so narrow", HLO_CONVERT, RULE_EXACT, narrow_product},
    {0},
};

void pass_dots(Compile *c) {
    Walk w;
    walk_init(&w, c);
    walk_note_uses(&w, 0);
    rules_walk(&w, dots_rules);
}
