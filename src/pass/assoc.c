// SPDX-License-Identifier: Apache-2.0
// assoc.c — sums of a matrix's rows that another product has made already.
// needs: values defined before use
// gives: the sum over j of y_ij (a_i · v_j), where o = y v is there, is a_i · o_i
// stale: nothing
//
//   o = y v,  dy v' = p,  sum_j y_ij p_ij     ──►     sum_d o_id dy_id
//
// That is the sum in a softmax's gradient: without it attention's gradients are one pass over the scores instead of two, and
// need no row before all of it is there. y may differ from what is summed by factors of numbers per row, constants and choices of zeros that
// both have (dropout). Where a loop makes o and stacks it, and the gradients are in a later loop, o is read there (twins.c). Result: within the
// rounding of o to its type; products of fp32 stay as the program says.
#include <math.h>

#include "hlo/dot.h"
#include "hlo/users.h"
#include "pass/rules.h"
#include "pass/loops.h"

#define ROWS_MAX 6
#define PREDS_MAX 4
#define LEAST 1024 // columns: what PSUM holds is summed where it lies

typedef struct Factors { // what an elementwise product is made of
    ValueId dot, base;   // a product of matrices, another value; 0: none
    int64_t perm[OTRN_MAX_RANK]; // dimension of `dot` for each
    ValueId preds[PREDS_MAX], rows[ROWS_MAX];
    bool inverse[ROWS_MAX];
    uint32_t npreds, nrows;
    double number;
} Factors;

typedef struct Assoc {
    Walk w; // first: the rule is handed it
    Users u;
    VEC(Twins) twins;
} Assoc;

// A broadcast along the last dimension.
static bool is_per_row(const Hlo *h, ValueId v) {
    const HloOp *op = hlo_def(h, v);
    if (!op || op->code != HLO_BROADCAST_IN_DIM)
        return false;
    uint32_t n;
    const int64_t *dims = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    const HloType *from = hlo_value_type(h, hlo_operand(h, op, 0));
    return !n || dims[n - 1] != hlo_value_type(h, v)->rank - 1 || from->dims[n - 1] == 1;
}

static bool add_factor(const Hlo *h, Factors *f, ValueId v, bool inverse) {
    double x;
    if (splat_f64(h, v, &x)) {
        f->number = inverse ? f->number / x : f->number * x;
        return x != 0;
    }
    if (!is_per_row(h, v) || f->nrows == ROWS_MAX)
        return false;
    f->rows[f->nrows] = v, f->inverse[f->nrows++] = inverse;
    return true;
}

// The product of matrices behind conversions and transposes.
static bool find_dot(const Hlo *h, Factors *f, ValueId v) {
    int rank = hlo_value_type(h, v)->rank;
    int64_t perm[OTRN_MAX_RANK];
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    for (const HloOp *op = hlo_def(h, v); op; op = hlo_def(h, v)) {
        uint32_t n;
        if (op->code == HLO_DOT_GENERAL && !f->dot) {
            f->dot = v;
            memcpy(f->perm, perm, sizeof perm);
            return true;
        }
        if (op->code == HLO_TRANSPOSE) {
            const int64_t *p = hlo_ints(op, AK_PERMUTATION, &n);
            for (int i = 0; i < rank; i++)
                perm[i] = p[perm[i]];
            assert(n == (uint32_t)rank);
        } else if (op->code != HLO_CONVERT) {
            break;
        }
        v = hlo_operand(h, op, 0);
    }
    return false;
}

static bool gather(const Hlo *h, Factors *f, ValueId v, uint32_t depth) {
    const HloOp *op = hlo_def(h, v);
    if (depth > 12)
        return false;
    v = twins_plain(h, v), op = hlo_def(h, v);
    if (splat_value(h, v) || is_per_row(h, v))
        return add_factor(h, f, v, false);
    if (op && op->code == HLO_CONVERT && dtype_is_float(hlo_value_type(h, hlo_operand(h, op, 0))->dtype) && !find_dot(h, &(Factors){0}, v))
        return gather(h, f, hlo_operand(h, op, 0), depth + 1);
    if (op && op->code == HLO_MULTIPLY)
        return gather(h, f, hlo_operand(h, op, 0), depth + 1) && gather(h, f, hlo_operand(h, op, 1), depth + 1);
    if (op && op->code == HLO_DIVIDE && (splat_value(h, hlo_operand(h, op, 1)) || is_per_row(h, hlo_operand(h, op, 1))))
        return gather(h, f, hlo_operand(h, op, 0), depth + 1) && add_factor(h, f, hlo_operand(h, op, 1), true);
    if (op && op->code == HLO_SELECT && splat_is_zero(h, hlo_operand(h, op, 2)) && f->npreds < PREDS_MAX) {
        f->preds[f->npreds++] = twins_plain(h, hlo_operand(h, op, 0));
        return gather(h, f, hlo_operand(h, op, 1), depth + 1);
    }
    if (!f->dot && find_dot(h, f, v))
        return true;
    if (f->base)
        return false;
    f->base = v;
    return true;
}

static bool same_preds(const Factors *a, const Factors *b) {
    for (uint32_t i = 0; i < a->npreds; i++) {
        bool there = false;
        for (uint32_t k = 0; k < b->npreds; k++)
            there = there || a->preds[i] == b->preds[k];
        if (!there)
            return false;
    }
    return a->npreds == b->npreds;
}

// --- which dimension is which ------------------------------------------------------------------------

typedef struct Sides { // of a product with v: of the other operand and the result
    const HloOp *op;
    uint32_t v; // which operand it is
    int64_t of[OTRN_MAX_RANK]; // per dimension of the result: of the other operand, or -1 - (dimension of v)
    int64_t with[OTRN_MAX_RANK]; // per dimension of the other operand: of v, -1: none
} Sides;

typedef struct Given { // o = y v, as it is there
    Sides o;
    Factors y;
    ValueId v; // it, or a transpose of it
    int64_t now[OTRN_MAX_RANK]; // dimension of o for each of v
} Given;

static void sides_of(const Hlo *h, const HloOp *op, uint32_t v, Sides *s) {
    *s = (Sides){.op = op, .v = v};
    assert(op->code == HLO_DOT_GENERAL && v < 2);
    DotDims by = dot_dims(op);
    uint32_t at = 0;
    for (int i = 0; i < OTRN_MAX_RANK; i++)
        s->with[i] = -1;
    for (uint32_t i = 0; i < by.nb; i++)
        s->of[at++] = by.batch[!v][i], s->with[by.batch[!v][i]] = by.batch[v][i];
    for (uint32_t i = 0; i < by.nc; i++)
        s->with[by.contract[!v][i]] = by.contract[v][i];
    for (uint32_t side = 0; side < 2; side++) {
        int64_t dims[OTRN_MAX_RANK];
        uint32_t n = dot_free_dims(hlo_value_type(h, hlo_operand(h, op, side)), op, side, dims);
        for (uint32_t i = 0; i < n; i++)
            s->of[at++] = side == v ? -1 - dims[i] : dims[i];
    }
    assert(at == hlo_value_type(h, op->results)->rank);
}

// Dimensions of a for those of o; those that are summed are named. p: the product a v, o: y v. Rows of both are y's.
static bool align(const Hlo *h, const Factors *f, const Sides *p, const Sides *o, int64_t *perm, int64_t *rows, uint32_t *nover, int64_t *over) {
    int rank = hlo_value_type(h, o->op->results)->rank, last = hlo_value_type(h, hlo_operand(h, o->op, !o->v))->rank - 1;
    const HloType *a = hlo_value_type(h, hlo_operand(h, p->op, !p->v));
    int64_t columns = p->of[f->perm[last]], kept = 0;
    if (columns >= 0 || o->with[last] != -1 - columns || a->rank != rank)
        return false;
    *nover = 0;
    for (int i = 0; i < rank; i++) {
        if (o->of[i] < 0) { // of v: what p contracts
            perm[i] = -1;
            for (int k = 0; k < a->rank; k++)
                if (p->with[k] == -1 - o->of[i])
                    perm[i] = k;
            over[(*nover)++] = i;
        } else { // a row of y
            int64_t y = o->of[i];
            perm[i] = p->of[f->perm[y]];
            if (perm[i] >= 0 && p->with[perm[i]] != o->with[y])
                return false;
            rows[y] = kept++;
        }
        if (perm[i] < 0)
            return false;
    }
    return *nover > 0 && kept == last;
}

// --- what takes its place ----------------------------------------------------------------------------

static ValueId sum(Walk *w, ValueId v, const int64_t *over, uint32_t n) {
    HloType t = *hlo_value_type(w->hlo, v);
    int64_t dims[OTRN_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < t.rank; i++)
        if (!hlo_among(over, n, i))
            dims[rank++] = t.dims[i];
    return walk_sum(w, v, over, n, hlo_type_tensor(w->hlo, DT_F32, rank, dims));
}

// The product with its dimensions in this order, by way of the transposes it goes through anyway.
static ValueId turned_alike(Assoc *s, const Given *g, const int64_t *perm, OpId before) {
    const Hlo *h = s->w.hlo;
    ValueId v = g->v;
    int rank = hlo_value_type(h, v)->rank;
    int64_t now[OTRN_MAX_RANK], next[OTRN_MAX_RANK], rest[OTRN_MAX_RANK];
    memcpy(now, g->now, sizeof now);
    for (bool more = true; more && memcmp(now, perm, (size_t)rank * sizeof *now);) {
        uint32_t np;
        more = false;
        for (Reader by = readers_of(&s->u, v); !more && reader_next(&by);) {
            if (by.op->code != HLO_TRANSPOSE || !users_there_before(&s->u, by.op->results, before))
                continue;
            const int64_t *p = hlo_ints(by.op, AK_PERMUTATION, &np);
            for (int k = 0; k < rank; k++)
                next[k] = now[p[k]];
            memcpy(now, next, sizeof now);
            v = by.op->results;
            more = true;
        }
    }
    for (int i = 0; i < rank; i++)
        for (int k = 0; k < rank; k++)
            if (now[k] == perm[i])
                rest[i] = k;
    return walk_transpose(&s->w, v, rest);
}

// The sum of a o over some dimensions of o, as a lies before transposes: perm says which dimension of a is which of o, rows which one
// is left for each of the result.
static ValueId inner_product(Assoc *s, ValueId a, const Given *g, const int64_t *perm, const int64_t *rows, const int64_t *over, uint32_t nover, OpId before) {
    const Hlo *h = s->w.hlo;
    int rank = hlo_value_type(h, g->v)->rank;
    int64_t to[OTRN_MAX_RANK], from[OTRN_MAX_RANK], sums[OTRN_MAX_RANK], left[OTRN_MAX_RANK], order[OTRN_MAX_RANK]; // o's dimension to a's, and back
    for (int i = 0; i < rank; i++)
        to[i] = perm[i];
    for (const HloOp *op = hlo_def(h, a); op && op->code == HLO_TRANSPOSE; op = hlo_def(h, a)) {
        uint32_t n;
        const int64_t *p = hlo_ints(op, AK_PERMUTATION, &n);
        for (int i = 0; i < rank; i++)
            to[i] = p[to[i]];
        a = hlo_operand(h, op, 0);
    }
    uint32_t nleft = 0, nsums = 0, nkept = 0;
    for (int i = 0; i < rank; i++)
        from[to[i]] = i;
    for (int i = 0; i < rank; i++) { // dimensions of a that stay, and where each is then
        if (hlo_among(over, nover, from[i]))
            sums[nsums++] = i;
        else
            left[i] = nleft++;
    }
    for (int i = 0; i < rank; i++) // those of o that stay, in its order
        if (!hlo_among(over, nover, i))
            order[nkept++] = left[to[i]];
    assert(nsums == nover);
    assert(nkept == nleft);
    a = walk_convert(&s->w, a, DT_F32);
    ValueId o = walk_convert(&s->w, turned_alike(s, g, from, before), DT_F32);
    ValueId r = sum(&s->w, walk_binary(&s->w, HLO_MULTIPLY, a, o), sums, nsums);
    for (uint32_t i = 0; i < nkept; i++)
        left[i] = order[rows[i]];
    return walk_transpose(&s->w, r, left);
}

// A number per row without the columns it was broadcast along.
static ValueId per_row(Walk *w, ValueId v, TypeId type) {
    const Hlo *h = w->hlo;
    assert(is_per_row(h, v));
    HloOp op = *hlo_def(h, v);
    ValueId from = hlo_operand(h, &op, 0);
    HloType t = *hlo_value_type(h, from);
    uint32_t n;
    const int64_t *dims = hlo_ints(&op, AK_BROADCAST_DIMENSIONS, &n);
    if (n && dims[n - 1] == hlo_value_type(h, v)->rank - 1)
        n--, from = walk_reshape(w, from, (int)n, t.dims);
    return walk_broadcast(w, from, dims, n, type);
}

static ValueId scaled(Walk *w, ValueId v, const Factors *f, bool swap) {
    for (uint32_t i = 0; i < f->nrows; i++) {
        ValueId by = per_row(w, f->rows[i], w->hlo->values.at[v].type);
        v = walk_binary(w, f->inverse[i] != swap ? HLO_DIVIDE : HLO_MULTIPLY, v, by);
    }
    return v;
}

// The summed value, up to factors, is the operand of a product with its operand number `side`.
static bool is_of_product(const Assoc *s, const Factors *f, const HloOp *op, uint32_t side, ValueId y, Given *g) {
    const Hlo *h = s->w.hlo;
    g->y = (Factors){.number = 1};
    if (!gather(h, &g->y, y, 0))
        return false;
    sides_of(h, op, side, &g->o);
    return g->y.base == f->base && !g->y.dot && same_preds(&g->y, f) && hlo_value_type(h, y)->rank == hlo_value_type(h, f->base)->rank;
}

// The product with v that the summed value is an operand of.
static bool find_product(const Assoc *s, OpId reduce, const Factors *f, ValueId v, Given *g) {
    const Hlo *h = s->w.hlo;
    for (Reader by = readers_of(&s->u, v); reader_next(&by);) {
        uint32_t side = by.op->code == HLO_DOT_GENERAL && hlo_operand(h, by.op, 1) == v;
        if (by.op->code != HLO_DOT_GENERAL || hlo_operand(h, by.op, 0) == hlo_operand(h, by.op, 1) || by.op->results == f->dot ||
            !users_there_before(&s->u, by.op->results, reduce) || !is_of_product(s, f, by.op, side, hlo_operand(h, by.op, !side), g))
            continue;
        g->v = by.op->results;
        for (int k = 0; k < OTRN_MAX_RANK; k++)
            g->now[k] = k;
        return true;
    }
    return false;
}

// --- the product of an earlier loop --------------------------------------------------------------------

// A value of the second loop that has the product's elements, transposed perhaps.
static bool find_there(Assoc *s, const Twins *t, ValueId product, OpId reduce, Given *g) {
    uint32_t np;
    ValueId v = product;
    for (int k = 0; k < OTRN_MAX_RANK; k++)
        g->now[k] = k;
    for (;;) {
        const HloOp *turn = NULL;
        g->v = twins_there(t, v, reduce);
        for (Reader by = readers_of(&s->u, v); !g->v && reader_next(&by);)
            turn = by.op->code == HLO_TRANSPOSE ? by.op : turn;
        if (g->v || !turn)
            return g->v != 0;
        const int64_t *p = hlo_ints(turn, AK_PERMUTATION, &np);
        int64_t now[OTRN_MAX_RANK];
        memcpy(now, g->now, sizeof now);
        for (uint32_t i = 0; i < np; i++)
            g->now[i] = now[p[i]];
        v = turn->results;
    }
}

// … of the first loop with the twin of v.
static bool find_twin(Assoc *s, const Twins *t, OpId reduce, const Factors *f, ValueId v, Given *g) {
    const Hlo *h = s->w.hlo;
    const HloRegion *body = &h->regions.at[t->first];
    for (uint32_t i = 0; i < body->ops.n; i++) {
        const HloOp *op = hlo_at(h, body->ops.at[i]);
        for (uint32_t side = 0; op->code == HLO_DOT_GENERAL && side < 2; side++) {
            if (!twins_are(t, v, hlo_operand(h, op, side)))
                continue;
            ValueId y = twins_there(t, hlo_operand(h, op, !side), reduce);
            if (y && is_of_product(s, f, op, side, y, g) && find_there(s, t, op->results, reduce, g))
                return true;
        }
    }
    return false;
}

static bool find_given(Assoc *s, OpId reduce, const Factors *f, ValueId v, Given *g) {
    bool found = find_product(s, reduce, f, v, g);
    for (uint32_t i = 0; i < s->twins.n && !found; i++)
        if (s->twins.at[i].second == s->u.region[reduce])
            found = find_twin(s, &s->twins.at[i], reduce, f, v, g);
    return found;
}

static ValueId instead(Walk *w, const HloOp *op) {
    Assoc *s = (Assoc *)w;
    const Hlo *h = w->hlo;
    uint32_t n;
    const int64_t *dims = op->noperands == 2 ? hlo_ints(op, AK_DIMENSIONS, &n) : NULL;
    const HloType *t = hlo_value_type(h, hlo_operand(h, op, 0));
    Factors f = {.number = 1};
    if (!dims || n != 1 || t->dtype != DT_F32 || dims[0] != t->rank - 1 || t->dims[t->rank - 1] < LEAST || reduce_body(h, op) != HLO_ADD ||
        !splat_is_zero(h, hlo_operand(h, op, 1)) || !gather(h, &f, hlo_operand(h, op, 0), 0) || !f.dot || !f.base)
        return 0;
    HloOp dot = *hlo_def(h, f.dot);
    if (dtype_bytes(hlo_value_type(h, hlo_operand(h, &dot, 0))->dtype) != 2)
        return 0;
    int64_t perm[OTRN_MAX_RANK], rows[OTRN_MAX_RANK], over[OTRN_MAX_RANK];
    for (uint32_t side = 0; side < 2; side++) {
        Sides p;
        Given g;
        uint32_t nover;
        sides_of(h, &dot, side, &p);
        if (!find_given(s, w->id, &f, hlo_operand(h, &dot, side), &g) || !align(h, &f, &p, &g.o, perm, rows, &nover, over))
            continue;
        ValueId r = inner_product(s, hlo_operand(h, &dot, !side), &g, perm, rows, over, nover, w->id);
        r = scaled(w, scaled(w, r, &f, false), &g.y, true);
        double number = f.number / g.y.number;
        if ((float)number != 1)
            r = walk_binary(w, HLO_MULTIPLY, r, walk_number(w, h->values.at[r].type, number));
        return h->values.at[r].type == h->values.at[op->results].type ? r : 0;
    }
    return 0;
}

const Rule assoc_rules[] = {{"sum over a row of y (a v'), y v being there: the sum over a row of (y v) a", HLO_REDUCE, RULE_ORDER, instead}, {0}};

// Each loop with those before it.
static void find_twins(void *pass, RegionId r) {
    Assoc *s = pass;
    OpList ops = {0};
    walk_list(s->w.c->scratch, s->w.hlo, r, &ops);
    for (uint32_t i = 0; i < ops.n; i++)
        for (uint32_t k = i + 1; hlo_at(s->w.hlo, ops.at[i])->code == HLO_WHILE && k < ops.n; k++) {
            Twins t;
            if (hlo_at(s->w.hlo, ops.at[k])->code == HLO_WHILE && twins_find(&t, s->w.c, &s->u, ops.at[i], ops.at[k]))
                VEC_PUSH(s->w.c->scratch, &s->twins, t);
        }
}

void pass_assoc(Compile *c) {
    Assoc s = {0};
    walk_init(&s.w, c);
    users_make(&s.u, c->hlo, c->scratch, hlo_main(c->hlo)->body);
    walk_regions(c->hlo, hlo_main(c->hlo)->body, find_twins, &s);
    rules_walk(&s.w, assoc_rules);
}
