// SPDX-License-Identifier: Apache-2.0
// inner.c — inner products of many pairs of vectors, or of two long ones, as elementwise products and sums.
// needs: values defined before use
// gives: no large dot_general whose operands have batch and contracting dimensions only
// stale: nothing
//
//   [b d] · [b d] -> [b]   ──►  the sum along d of lhs * rhs
//
// The array would use one of its columns at a time; row programs read each operand once, and that is all there is to do.
#include "hlo/dot.h"
#include "pass/walk.h"

#define INNER_MIN 16384 // elements

typedef struct Inner {
    Hlo *h;
    Walk w;
    LocId loc;
} Inner;

static ValueId push(Inner *s, HloOpcode code, uint32_t n, const ValueId *in, TypeId type) {
    return walk_push(&s->w, hlo_op(s->h, code, s->loc, n, in, 1, &type));
}

static ValueId to_dims(Inner *s, ValueId v, int rank, const int64_t *dims) {
    return walk_reshape(&s->w, s->loc, v, rank, dims);
}

static ValueId converted(Inner *s, ValueId v, int dtype) {
    return walk_convert(&s->w, s->loc, v, dtype);
}

// Batch and contracting dimensions of lhs as they lie; for each the one of rhs that goes with it.
typedef struct Match {
    uint32_t n;
    int64_t lhs[OTRN_MAX_RANK], rhs[OTRN_MAX_RANK], size[OTRN_MAX_RANK];
    int64_t batch[OTRN_MAX_RANK]; // which batch dimension it is; -1: it is contracted
} Match;

static bool match(const Hlo *h, const HloOp *op, Match *m) {
    uint32_t nb, nc;
    const int64_t *lb = hlo_ints(op, AK_LHS_BATCHING_DIMENSIONS, &nb), *rb = hlo_ints(op, AK_RHS_BATCHING_DIMENSIONS, &nb);
    const int64_t *lc = hlo_ints(op, AK_LHS_CONTRACTING_DIMENSIONS, &nc), *rc = hlo_ints(op, AK_RHS_CONTRACTING_DIMENSIONS, &nc);
    const HloType *l = hlo_value_type(h, hlo_operand(h, op, 0)), *r = hlo_value_type(h, hlo_operand(h, op, 1));
    const HloType *o = hlo_value_type(h, op->results);
    *m = (Match){0};
    for (int64_t d = 0; d < l->rank; d++) {
        for (uint32_t i = 0; i < nb + nc; i++) {
            int64_t of = i < nb ? lb[i] : lc[i - nb];
            if (of != d)
                continue;
            m->lhs[m->n] = d, m->rhs[m->n] = i < nb ? rb[i] : rc[i - nb];
            m->size[m->n] = l->dims[d];
            m->batch[m->n++] = i < nb ? (int64_t)i : -1;
        }
    }
    int64_t elems = 1, batches = 1;
    for (uint32_t i = 0; i < m->n; i++) {
        elems *= m->size[i];
        batches *= m->batch[i] < 0 ? 1 : m->size[i];
    }
    bool f32 = l->dtype == DT_F32 || l->dtype == DT_BF16 || l->dtype == DT_F16;
    return f32 && r->dtype == l->dtype && elems >= INNER_MIN && elems == l->elems && elems == r->elems && batches == o->elems &&
           elems > batches && m->n && m->rhs[m->n - 1] == r->rank - 1 && m->lhs[m->n - 1] == l->rank - 1;
}

static ValueId inner(Inner *s, const HloOp *op) {
    Hlo *h = s->h;
    Match m;
    for (uint32_t i = 0; i < 3; i++) {
        const HloType *t = hlo_value_type(h, i < 2 ? hlo_operand(h, op, i) : op->results);
        if (t->kind != HT_TENSOR || t->dynamic || t->text)
            return 0;
    }
    if (!dot_on_tensor_engine(h, op) || !match(h, op, &m))
        return 0;
    ValueId l = to_dims(s, hlo_operand(h, op, 0), (int)m.n, m.size), r = hlo_operand(h, op, 1);
    int64_t dims[OTRN_MAX_RANK], perm[OTRN_MAX_RANK], over[OTRN_MAX_RANK], left[OTRN_MAX_RANK], order[OTRN_MAX_RANK];
    uint32_t nover = 0, nleft = 0;
    for (uint32_t i = 0; i < m.n; i++) { // rhs without dimensions of size one that are free
        int64_t place = 0;
        for (uint32_t k = 0; k < m.n; k++)
            place += m.rhs[k] < m.rhs[i];
        dims[place] = m.size[i];
        perm[i] = place;
    }
    r = walk_transpose(&s->w, s->loc, to_dims(s, r, (int)m.n, dims), perm);
    for (uint32_t i = 0; i < m.n; i++) {
        if (m.batch[i] < 0) {
            over[nover++] = i;
            continue;
        }
        order[m.batch[i]] = nleft;
        left[nleft++] = m.size[i];
    }
    ValueId both[2] = {converted(s, l, DT_F32), converted(s, r, DT_F32)};
    ValueId product = push(s, HLO_MULTIPLY, 2, both, h->values.at[both[0]].type);
    ValueId v = walk_sum(&s->w, s->loc, product, over, nover, hlo_type_tensor(h, DT_F32, (int)nleft, left));
    HloType out = *hlo_value_type(h, op->results);
    v = walk_transpose(&s->w, s->loc, converted(s, v, out.dtype), order);
    return to_dims(s, v, out.rank, out.dims);
}

static void inner_visit(void *pass, OpId id) {
    Inner *s = pass;
    HloOp op = *hlo_at(s->h, id);
    s->loc = op.loc;
    ValueId to = op.code == HLO_DOT_GENERAL ? inner(s, &op) : 0;
    if (to)
        walk_replace(&s->w, op.results, to);
    else
        walk_push(&s->w, id);
}

void pass_inner(Compile *c) {
    Inner s = {.h = c->hlo};
    walk_init(&s.w, c);
    walk_rewrite(&s.w, hlo_main(c->hlo)->body, WALK_CONTROL, inner_visit, &s);
}
