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
// both have (dropout). Result: within the rounding of o to its type; products of fp32 stay as the program says.
#include <math.h>

#include "hlo/dot.h"
#include "hlo/users.h"
#include "pass/walk.h"

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
    Hlo *h;
    Walk w;
    Users u;
    LocId loc;
} Assoc;

static const HloOp *def_of(const Hlo *h, ValueId v) { return h->values.at[v].def ? hlo_at(h, h->values.at[v].def) : NULL; }

static bool number_of(const Hlo *h, ValueId v, double *x) {
    const HloAttr *a = splat_value(h, v);
    if (!a || !dtype_is_float(hlo_value_type(h, v)->dtype))
        return false;
    *x = dtype_to_f64(hlo_value_type(h, v)->dtype, a->data);
    return true;
}

// A broadcast along the last dimension.
static bool is_per_row(const Hlo *h, ValueId v) {
    const HloOp *op = def_of(h, v);
    if (!op || op->code != HLO_BROADCAST_IN_DIM)
        return false;
    uint32_t n;
    const int64_t *dims = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    const HloType *from = hlo_value_type(h, hlo_operand(h, op, 0));
    return !n || dims[n - 1] != hlo_value_type(h, v)->rank - 1 || from->dims[n - 1] == 1;
}

static bool add_factor(const Hlo *h, Factors *f, ValueId v, bool inverse) {
    double x;
    if (number_of(h, v, &x)) {
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
    for (const HloOp *op = def_of(h, v); op; op = def_of(h, v)) {
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
        } else if (op->code != HLO_CONVERT) {
            break;
        }
        v = hlo_operand(h, op, 0);
    }
    return false;
}

static bool gather(const Hlo *h, Factors *f, ValueId v, uint32_t depth) {
    const HloOp *op = def_of(h, v);
    double x;
    if (depth > 12)
        return false;
    if (splat_value(h, v) || is_per_row(h, v))
        return add_factor(h, f, v, false);
    if (op && op->code == HLO_CONVERT && dtype_is_float(hlo_value_type(h, hlo_operand(h, op, 0))->dtype) && !find_dot(h, &(Factors){0}, v))
        return gather(h, f, hlo_operand(h, op, 0), depth + 1);
    if (op && op->code == HLO_MULTIPLY)
        return gather(h, f, hlo_operand(h, op, 0), depth + 1) && gather(h, f, hlo_operand(h, op, 1), depth + 1);
    if (op && op->code == HLO_DIVIDE && (splat_value(h, hlo_operand(h, op, 1)) || is_per_row(h, hlo_operand(h, op, 1))))
        return gather(h, f, hlo_operand(h, op, 0), depth + 1) && add_factor(h, f, hlo_operand(h, op, 1), true);
    if (op && op->code == HLO_SELECT && number_of(h, hlo_operand(h, op, 2), &x) && x == 0 && f->npreds < PREDS_MAX) {
        f->preds[f->npreds++] = hlo_operand(h, op, 0);
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

static void sides_of(const Hlo *h, const HloOp *op, uint32_t v, Sides *s) {
    *s = (Sides){.op = op, .v = v};
    uint32_t nb, nc, at = 0;
    const int64_t *b[2] = {hlo_ints(op, AK_LHS_BATCHING_DIMENSIONS, &nb), hlo_ints(op, AK_RHS_BATCHING_DIMENSIONS, &nb)};
    const int64_t *c[2] = {hlo_ints(op, AK_LHS_CONTRACTING_DIMENSIONS, &nc), hlo_ints(op, AK_RHS_CONTRACTING_DIMENSIONS, &nc)};
    for (int i = 0; i < OTRN_MAX_RANK; i++)
        s->with[i] = -1;
    for (uint32_t i = 0; i < nb; i++)
        s->of[at++] = b[!v][i], s->with[b[!v][i]] = b[v][i];
    for (uint32_t i = 0; i < nc; i++)
        s->with[c[!v][i]] = c[v][i];
    for (uint32_t side = 0; side < 2; side++) {
        int64_t dims[OTRN_MAX_RANK];
        uint32_t n = dot_free_dims(hlo_value_type(h, hlo_operand(h, op, side)), op, side, dims);
        for (uint32_t i = 0; i < n; i++)
            s->of[at++] = side == v ? -1 - dims[i] : dims[i];
    }
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

static ValueId push(Assoc *s, HloOpcode code, uint32_t n, const ValueId *in, TypeId type) {
    return walk_push(&s->w, hlo_op(s->h, code, s->loc, n, in, 1, &type));
}

static ValueId converted(Assoc *s, ValueId v, int dtype) {
    return walk_convert(&s->w, s->loc, v, dtype);
}

static ValueId sum(Assoc *s, ValueId v, const int64_t *over, uint32_t n) {
    Hlo *h = s->h;
    HloType t = *hlo_value_type(h, v);
    int64_t dims[OTRN_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < t.rank; i++) {
        bool gone = false;
        for (uint32_t k = 0; k < n; k++)
            gone = gone || over[k] == i;
        if (!gone)
            dims[rank++] = t.dims[i];
    }
    return walk_sum(&s->w, s->loc, v, over, n, hlo_type_tensor(h, DT_F32, rank, dims));
}

// The value with its dimensions in this order, by way of the transposes it goes through anyway.
static ValueId turned_alike(Assoc *s, ValueId v, const int64_t *perm, OpId before) {
    int rank = hlo_value_type(s->h, v)->rank;
    int64_t now[OTRN_MAX_RANK], next[OTRN_MAX_RANK], rest[OTRN_MAX_RANK];
    for (int i = 0; i < rank; i++)
        now[i] = i;
    for (bool more = true; more && memcmp(now, perm, (size_t)rank * sizeof *now);) {
        uint32_t n, np;
        const OpId *users = users_of(&s->u, v, &n);
        more = false;
        for (uint32_t i = 0; i < n && !more; i++) {
            const HloOp *op = hlo_at(s->h, users[i]);
            if (op->code != HLO_TRANSPOSE || !users_there_before(&s->u, op->results, before))
                continue;
            const int64_t *p = hlo_ints(op, AK_PERMUTATION, &np);
            for (int k = 0; k < rank; k++)
                next[k] = now[p[k]];
            memcpy(now, next, sizeof now);
            v = op->results;
            more = true;
        }
    }
    for (int i = 0; i < rank; i++)
        for (int k = 0; k < rank; k++)
            if (now[k] == perm[i])
                rest[i] = k;
    return walk_transpose(&s->w, s->loc, v, rest);
}

// The sum of a o over some dimensions of o, as a lies before transposes: perm says which dimension of a is which of o, rows which one
// is left for each of the result.
static ValueId inner_product(Assoc *s, ValueId a, ValueId o, const int64_t *perm, const int64_t *rows, const int64_t *over, uint32_t nover, OpId before) {
    Hlo *h = s->h;
    int rank = hlo_value_type(h, o)->rank;
    int64_t to[OTRN_MAX_RANK], from[OTRN_MAX_RANK], sums[OTRN_MAX_RANK], left[OTRN_MAX_RANK], order[OTRN_MAX_RANK]; // o's dimension to a's, and back
    for (int i = 0; i < rank; i++)
        to[i] = perm[i];
    for (const HloOp *op = def_of(h, a); op && op->code == HLO_TRANSPOSE; op = def_of(h, a)) {
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
        bool gone = false;
        for (uint32_t k = 0; k < nover; k++)
            gone = gone || over[k] == from[i];
        if (gone)
            sums[nsums++] = i;
        else
            left[i] = nleft++;
    }
    for (int i = 0; i < rank; i++) { // those of o that stay, in its order
        bool gone = false;
        for (uint32_t k = 0; k < nover; k++)
            gone = gone || over[k] == i;
        if (!gone)
            order[nkept++] = left[to[i]];
    }
    ValueId both[2] = {converted(s, a, DT_F32), converted(s, turned_alike(s, o, from, before), DT_F32)};
    ValueId r = sum(s, push(s, HLO_MULTIPLY, 2, both, h->values.at[both[0]].type), sums, nsums);
    for (uint32_t i = 0; i < nkept; i++)
        left[i] = order[rows[i]];
    return walk_transpose(&s->w, s->loc, r, left);
}

// A number per row without the columns it was broadcast along.
static ValueId per_row(Assoc *s, ValueId v, TypeId type) {
    Hlo *h = s->h;
    HloOp op = *def_of(h, v);
    ValueId from = hlo_operand(h, &op, 0);
    HloType t = *hlo_value_type(h, from);
    uint32_t n;
    const int64_t *dims = hlo_ints(&op, AK_BROADCAST_DIMENSIONS, &n);
    if (n && dims[n - 1] == hlo_value_type(h, v)->rank - 1)
        from = push(s, HLO_RESHAPE, 1, &from, hlo_type_tensor(h, t.dtype, (int)--n, t.dims));
    OpId made = hlo_op(h, HLO_BROADCAST_IN_DIM, s->loc, 1, &from, 1, &type);
    hlo_set_ints(h, made, AK_BROADCAST_DIMENSIONS, dims, n);
    return walk_push(&s->w, made);
}

static ValueId scaled(Assoc *s, ValueId v, const Factors *f, bool swap) {
    TypeId type = s->h->values.at[v].type;
    for (uint32_t i = 0; i < f->nrows; i++) {
        ValueId by = per_row(s, f->rows[i], type);
        v = push(s, f->inverse[i] != swap ? HLO_DIVIDE : HLO_MULTIPLY, 2, (ValueId[]){v, by}, type);
    }
    return v;
}

// The product with v that the summed value, up to factors, is an operand of.
static bool find_product(const Assoc *s, OpId reduce, const Factors *f, ValueId v, Factors *y, Sides *o) {
    uint32_t n;
    const OpId *users = users_of(&s->u, v, &n);
    for (uint32_t i = 0; i < n; i++) {
        const HloOp *op = hlo_at(s->h, users[i]);
        uint32_t side = op->code == HLO_DOT_GENERAL && hlo_operand(s->h, op, 1) == v;
        *y = (Factors){.number = 1};
        if (op->code != HLO_DOT_GENERAL || hlo_operand(s->h, op, 0) == hlo_operand(s->h, op, 1) || op->results == f->dot ||
            !users_there_before(&s->u, op->results, reduce) || !gather(s->h, y, hlo_operand(s->h, op, !side), 0))
            continue;
        sides_of(s->h, op, side, o);
        if (y->base == f->base && !y->dot && same_preds(y, f) && hlo_value_type(s->h, hlo_operand(s->h, op, !side))->rank == hlo_value_type(s->h, f->base)->rank)
            return true;
    }
    return false;
}

static ValueId instead(Assoc *s, OpId id) {
    Hlo *h = s->h;
    HloOp op = *hlo_at(h, id);
    uint32_t n;
    const int64_t *dims = op.noperands == 2 ? hlo_ints(&op, AK_DIMENSIONS, &n) : NULL;
    const HloType *t = hlo_value_type(h, hlo_operand(h, &op, 0));
    double start;
    Factors f = {.number = 1}, y;
    if (!dims || n != 1 || t->dtype != DT_F32 || t->dynamic || dims[0] != t->rank - 1 || t->dims[t->rank - 1] < LEAST || reduce_body(h, &op) != HLO_ADD ||
        !number_of(h, hlo_operand(h, &op, 1), &start) || start != 0 || !gather(h, &f, hlo_operand(h, &op, 0), 0) || !f.dot || !f.base)
        return 0;
    const HloOp *dot = def_of(h, f.dot);
    if (dtype_bytes(hlo_value_type(h, hlo_operand(h, dot, 0))->dtype) != 2)
        return 0;
    int64_t perm[OTRN_MAX_RANK], rows[OTRN_MAX_RANK], over[OTRN_MAX_RANK];
    for (uint32_t side = 0; side < 2; side++) {
        Sides p, o;
        uint32_t nover;
        sides_of(h, dot, side, &p);
        if (!find_product(s, id, &f, hlo_operand(h, dot, side), &y, &o) || !align(h, &f, &p, &o, perm, rows, &nover, over))
            continue;
        s->loc = op.loc;
        ValueId r = inner_product(s, hlo_operand(h, dot, !side), o.op->results, perm, rows, over, nover, id);
        r = scaled(s, scaled(s, r, &f, false), &y, true);
        float number = (float)(f.number / y.number);
        TypeId type = h->values.at[r].type;
        if (number != 1)
            r = push(s, HLO_MULTIPLY, 2, (ValueId[]){r, walk_push(&s->w, hlo_op_splat(h, op.loc, type, &number))}, type);
        return type == h->values.at[op.results].type ? r : 0;
    }
    return 0;
}

static void visit(void *pass, OpId id) {
    Assoc *s = pass;
    ValueId made = hlo_at(s->h, id)->code == HLO_REDUCE && id < s->u.h->ops.n ? instead(s, id) : 0;
    if (made)
        walk_replace(&s->w, hlo_at(s->h, id)->results, made);
    else
        walk_push(&s->w, id);
}

void pass_assoc(Compile *c) {
    Assoc s = {.h = c->hlo};
    walk_init(&s.w, c);
    users_make(&s.u, c->hlo, c->scratch, hlo_main(c->hlo)->body);
    walk_rewrite(&s.w, hlo_main(c->hlo)->body, WALK_CONTROL, visit, &s);
}
