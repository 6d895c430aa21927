// SPDX-License-Identifier: Apache-2.0
// factors.c — sums over rows of what columns scale: the sum, scaled.
// needs: values defined before use, constants folded
// gives: no sum over leading dimensions of a product with numbers that are the same along them
// stale: nothing (dce drops what became unused)
//
//   Σ_rows (x · broadcast c)  ──►  c · Σ_rows x
//
// The gradients of a batch norm are sums of the same few products, each scaled by numbers per channel: without these they are equal (cse), and
// none waits for another. What products read is left as it is, for they take sums of it along (tile/sums.c), and so are squares of something
// scaled, which may be scaled lest they overflow.
#include <string.h>

#include "hlo/users.h"
#include "pass/rules.h"

#define DEPTH 4
#define LEAST 65536 // elements summed

typedef struct Factors {
    Walk w; // first: the rule is handed it
    Users u;
} Factors;

typedef struct Sum {
    Walk *w;
    bool over[OTRN_MAX_RANK];   // dimensions that are summed
    int64_t place[OTRN_MAX_RANK]; // of the others in the result
    TypeId type;                // of the result
    Values factors;
    bool negative, both; // both sides of a product have some
} Sum;

// The same along all that is summed: as the result has it; 0: it is not.
static ValueId factor_of(Sum *s, ValueId v, bool make) {
    const Hlo *h = s->w->hlo;
    const HloOp *op = hlo_def(h, v);
    const HloAttr *number = splat_value(h, v);
    if (number)
        return make ? walk_push(s->w, hlo_op_splat(s->w->hlo, s->w->loc, s->type, number->data)) : v;
    if (!op || op->code != HLO_BROADCAST_IN_DIM)
        return 0;
    uint32_t n, kept = 0;
    const int64_t *dims = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    ValueId from = hlo_operand(h, op, 0);
    HloType t = *hlo_value_type(h, from);
    int64_t to[OTRN_MAX_RANK], size[OTRN_MAX_RANK];
    for (uint32_t i = 0; i < n; i++) {
        if (t.dims[i] != 1 && (s->over[dims[i]] || (kept && s->place[dims[i]] <= to[kept - 1])))
            return 0;
        if (t.dims[i] != 1)
            to[kept] = s->place[dims[i]], size[kept++] = t.dims[i];
    }
    if (!make)
        return v;
    from = walk_reshape(s->w, from, (int)kept, size);
    return s->w->hlo->values.at[from].type == s->type ? from : walk_broadcast(s->w, from, to, kept, s->type);
}

// Whether there is a factor that varies, at most one side of each product having any.
static bool has_factor(Sum *s, ValueId v, int depth, bool *varies) {
    const HloOp *op = hlo_def(s->w->hlo, v);
    if (factor_of(s, v, false)) {
        *varies = *varies || !splat_value(s->w->hlo, v);
        return true;
    }
    if (!op || depth == DEPTH)
        return false;
    if (op->code == HLO_NEGATE)
        return has_factor(s, hlo_operand(s->w->hlo, op, 0), depth + 1, varies);
    if (op->code != HLO_MULTIPLY)
        return false;
    bool a = has_factor(s, hlo_operand(s->w->hlo, op, 0), depth + 1, varies), b = has_factor(s, hlo_operand(s->w->hlo, op, 1), depth + 1, varies);
    if (a && b && !factor_of(s, hlo_operand(s->w->hlo, op, 0), false) && !factor_of(s, hlo_operand(s->w->hlo, op, 1), false))
        s->both = true;
    return a || b;
}

// What is left without factors; 0: nothing.
static ValueId strip(Sum *s, ValueId v, int depth) {
    Hlo *h = s->w->hlo;
    const HloOp *def = hlo_def(h, v);
    ValueId f = factor_of(s, v, true);
    if (f) {
        VEC_PUSH(s->w->c->scratch, &s->factors, f);
        return 0;
    }
    if (!def || depth == DEPTH || (def->code != HLO_NEGATE && def->code != HLO_MULTIPLY))
        return v;
    HloOp op = *def;
    size_t before = s->factors.n;
    ValueId x = hlo_operand(h, &op, 0), a = strip(s, x, depth + 1);
    if (op.code == HLO_NEGATE) {
        if (s->factors.n == before)
            return v;
        s->negative = !s->negative;
        return a;
    }
    ValueId y = hlo_operand(h, &op, 1), b = strip(s, y, depth + 1);
    if (s->factors.n == before)
        return v;
    return !a ? b : !b ? a : walk_binary(s->w, HLO_MULTIPLY, a, b);
}

// A product reads the value, or another form of it.
static bool feeds_product(const Factors *f, ValueId v) {
    for (Reader by = readers_of(&f->u, v); reader_next(&by);) {
        bool form = by.op->code == HLO_RESHAPE || by.op->code == HLO_TRANSPOSE || by.op->code == HLO_CONVERT;
        if (by.op->code == HLO_DOT_GENERAL || by.op->code == HLO_CONVOLUTION || (form && feeds_product(f, by.op->results)))
            return true;
    }
    return false;
}

// Something is summed that lies farther apart than what is left.
static bool is_across(const Sum *s, int rank) {
    bool summed = false, across = false;
    for (int i = 0; i < rank; i++)
        summed = summed || s->over[i], across = across || (summed && !s->over[i]);
    return across;
}

static ValueId scale_sum(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    uint32_t n;
    const int64_t *dims = op->noperands == 2 ? hlo_ints(op, AK_DIMENSIONS, &n) : NULL;
    ValueId v = hlo_operand(h, op, 0);
    const HloType *t = hlo_value_type(h, v);
    if (!dims || t->dtype != DT_F32 || t->elems < LEAST || reduce_body(h, op) != HLO_ADD || !splat_is_zero(h, hlo_operand(h, op, 1)))
        return 0;
    Sum s = {.w = w, .type = h->values.at[op->results].type};
    int64_t left = 0, rank = t->rank;
    for (uint32_t i = 0; i < n; i++)
        s.over[dims[i]] = true;
    for (int64_t i = 0; i < rank; i++)
        s.place[i] = s.over[i] ? -1 : left++;
    bool varies = false;
    if (!is_across(&s, (int)rank) || !has_factor(&s, v, 0, &varies) || !varies || s.both || feeds_product((const Factors *)w, v))
        return 0;
    int64_t over[OTRN_MAX_RANK];
    memcpy(over, dims, n * sizeof *over);
    ValueId x = strip(&s, v, 0);
    if (!x)
        return 0;
    assert(s.factors.n > 0);
    ValueId r = walk_sum(w, x, over, n, s.type);
    for (uint32_t i = 0; i < s.factors.n; i++)
        r = walk_binary(w, HLO_MULTIPLY, r, s.factors.at[i]);
    return s.negative ? walk_unary(w, HLO_NEGATE, r) : r;
}

const Rule factors_rules[] = {{"sum over rows of x by numbers of the columns: the sum, by them", HLO_REDUCE, RULE_ORDER, scale_sum}, {0}};

void pass_factors(Compile *c) {
    Factors f = {0};
    walk_init(&f.w, c);
    users_make(&f.u, c->hlo, c->scratch, hlo_main(c->hlo)->body);
    rules_walk(&f.w, factors_rules);
}
