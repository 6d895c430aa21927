// SPDX-License-Identifier: Apache-2.0
// sums.c — sums over what a product contracts, of one of its operands, become part of that product: the gradient of a bias beside that of its
// weights. The array has the operand in SBUF then, and another read of it in HBM is spared (product.c).
//
// pass/sums.c has written such a sum as a product with a row of ones. It goes with a product of the same rows and columns of the same operand, in
// the same tiles of k, so that every bit is that of the two apart; where both stand, whichever is later, so nobody may read the other's
// result before. By the chip's prices: sums take banks and SBUF that the product's blocks have else.
#include "hlo/dot.h"
#include "hlo/query.h"
#include "tile/product.h"
#include "tile/lower.h"

#define CANDIDATES 4 // of a sum, looked at

static bool is_plain(const Lower *l, OpId id) {
    const HloOp *op = hlo_at(l->h, id);
    return !l->block_of[id] && !l->sum_of[id] && !l->row_sum_of[id] && lower_kind(l, op, NULL) == STEP_DOT;
}

static bool is_same_axis(const Nest *a, const Nest *b, bool a_dst, bool b_dst) {
    const Axis *x = &a->axis[0], *y = &b->axis[0];
    return x->n == y->n && (a_dst ? x->dst : x->src) == (b_dst ? y->dst : y->src);
}

static int64_t tile_of(const Product *p) {
    Layout l = layout_of(&p->k, false), r = layout_of(&p->k, true);
    return product_tile_k(&l, &r);
}

// Which operand of the product it is that the sum goes over.
static int summed(const Lower *l, OpId dot, OpId with) {
    const Hlo *h = l->h;
    const HloOp *op = hlo_at(h, with);
    Product s = dot_product(h, hlo_at(h, dot), 0), p = dot_product(h, op, 0);
    ValueId v = before_reshapes(h, hlo_operand(h, hlo_at(h, dot), 1));
    if (nest_size(&p.batch) != 1 || tile_of(&s) != tile_of(&p))
        return SUMS_NONE;
    if (before_reshapes(h, hlo_operand(h, op, 1)) == v && is_same_axis(&s.k, &p.k, true, true) && is_same_axis(&s.n, &p.n, false, false))
        return SUMS_RHS;
    return before_reshapes(h, hlo_operand(h, op, 0)) == v && is_same_axis(&s.k, &p.k, true, false) && is_same_axis(&s.n, &p.m, false, false) ? SUMS_LHS : SUMS_NONE;
}

// Nobody reads the results up to there: those of the product, or of the program behind it.
static bool is_read_later(const Lower *l, ValueId v, RegionId r, uint32_t at) {
    for (Reader by = readers_of(&l->users, v); reader_next(&by);)
        if (l->users.region[by.id] != r || l->users.position[by.id] <= at)
            return false;
    return true;
}

// The one that stands first may be made where the other one is.
static bool may_wait(const Lower *l, OpId first, OpId then) {
    const Epilogue *p = lower_epilogue(l, first);
    const HloOp *op = hlo_at(l->h, p ? p->rows : first);
    bool later = !p || !p->keeps;
    for (uint32_t i = 0; i < op->nresults && later; i++)
        later = is_read_later(l, op->results + i, l->users.region[then], l->users.position[then]);
    return later;
}

// The program behind the one reads nothing of the other.
static bool is_apart(const Lower *l, OpId id, OpId other) {
    const Hlo *h = l->h;
    const Epilogue *p = lower_epilogue(l, id), *q = lower_epilogue(l, other);
    bool apart = true;
    for (uint32_t i = 0; p && i < hlo_at(h, p->rows)->noperands && apart; i++) {
        OpId def = h->values.at[lower_producer(l, hlo_operand(h, hlo_at(h, p->rows), i))].def;
        apart = !def || (def != other && (!q || def != q->rows));
    }
    return apart;
}

static bool suits(const Lower *l, OpId dot, OpId with, DotSum *out) {
    bool after = l->users.position[with] > l->users.position[dot];
    if (with == dot || l->users.region[with] != l->users.region[dot] || !dot_on_tensor_engine(l->h, hlo_at(l->h, with)) || !is_plain(l, with) ||
        lower_is_set(l, hlo_at(l->h, with)) || dot_is_batch(l->h, hlo_at(l->h, with)))
        return false;
    *out = (DotSum){.dot = dot, .with = with, .at = after ? with : dot, .of = (uint8_t)summed(l, dot, with)};
    return out->of && may_wait(l, after ? dot : with, out->at) && is_apart(l, dot, with) && is_apart(l, with, dot);
}

typedef struct Search {
    Lower *l;
    OpId dot;
    double alone; // ns of the sum by itself
    DotSum best;
    double gain;
    uint32_t looked;
} Search;

static void look_at(Search *s, ValueId v) {
    Lower *l = s->l;
    for (Reader by = readers_of(&l->users, v); reader_next(&by);) {
        DotSum at;
        if (by.op->code == HLO_RESHAPE)
            look_at(s, by.op->results);
        if (by.op->code != HLO_DOT_GENERAL || s->looked == CANDIDATES || !suits(l, s->dot, by.id, &at))
            continue;
        s->looked++;
        double with = dot_ns(l->asks, by.id, &at), gain = dot_ns(l->asks, by.id, NULL) + s->alone - with;
        if (with > 0 && gain > s->gain)
            s->best = at, s->gain = gain;
    }
}

static void try_dot(Lower *l, OpId id) {
    const HloOp *op = hlo_at(l->h, id);
    const Epilogue *p = lower_epilogue(l, id);
    if (!dot_on_tensor_engine(l->h, op) || !lower_is_set(l, op) || !is_plain(l, id) || (p && p->keeps))
        return;
    Product of = dot_product(l->h, op, 0);
    if (of.m.axis[0].n != 1 || nest_size(&of.batch) != 1)
        return;
    Search s = {.l = l, .dot = id, .alone = dot_ns(l->asks, id, NULL)};
    look_at(&s, before_reshapes(l->h, hlo_operand(l->h, op, 1)));
    if (!s.best.dot)
        return;
    VEC_PUSH(l->c->scratch, &l->sums, s.best);
    l->sum_of[id] = l->sum_of[s.best.with] = l->sums.n; // from 1
}

void sums_find(Lower *l) {
    l->sum_of = ARENA_NEWN(l->c->scratch, uint32_t, l->h->ops.n);
    lower_each(l, HLO_DOT_GENERAL, try_dot);
}
