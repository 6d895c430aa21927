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
#include "pass/rules.h"

#define INNER_MIN 16384 // elements

// Batch and contracting dimensions of lhs as they lie; for each the one of rhs that goes with it.
typedef struct Match {
    uint32_t n;
    int64_t lhs[OTRN_MAX_RANK], rhs[OTRN_MAX_RANK], size[OTRN_MAX_RANK];
    int64_t batch[OTRN_MAX_RANK]; // which batch dimension it is; -1: it is contracted
} Match;

static bool match(const Hlo *h, const HloOp *op, Match *m) {
    DotDims by = dot_dims(op);
    const HloType *l = hlo_value_type(h, hlo_operand(h, op, 0)), *r = hlo_value_type(h, hlo_operand(h, op, 1));
    const HloType *o = hlo_value_type(h, op->results);
    *m = (Match){0};
    for (int64_t d = 0; d < l->rank; d++) {
        for (uint32_t i = 0; i < by.nb + by.nc; i++) {
            int64_t of = i < by.nb ? by.batch[0][i] : by.contract[0][i - by.nb];
            if (of != d)
                continue;
            m->lhs[m->n] = d, m->rhs[m->n] = i < by.nb ? by.batch[1][i] : by.contract[1][i - by.nb];
            m->size[m->n] = l->dims[d];
            m->batch[m->n++] = i < by.nb ? (int64_t)i : -1;
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

static ValueId inner(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    Match m;
    if (!dot_on_tensor_engine(h, op) || !match(h, op, &m))
        return 0;
    ValueId l = walk_reshape(w, hlo_operand(h, op, 0), (int)m.n, m.size), r = hlo_operand(h, op, 1);
    int64_t dims[OTRN_MAX_RANK], perm[OTRN_MAX_RANK], over[OTRN_MAX_RANK], left[OTRN_MAX_RANK], order[OTRN_MAX_RANK];
    uint32_t nover = 0, nleft = 0;
    for (uint32_t i = 0; i < m.n; i++) { // rhs without dimensions of size one that are free
        int64_t place = 0;
        for (uint32_t k = 0; k < m.n; k++)
            place += m.rhs[k] < m.rhs[i];
        dims[place] = m.size[i];
        perm[i] = place;
    }
    r = walk_transpose(w, walk_reshape(w, r, (int)m.n, dims), perm);
    assert(hlo_value_type(h, r)->rank == m.n);
    for (uint32_t i = 0; i < m.n; i++) {
        if (m.batch[i] < 0) {
            over[nover++] = i;
            continue;
        }
        order[m.batch[i]] = nleft;
        left[nleft++] = m.size[i];
    }
    assert(nover > 0 && nover + nleft == m.n);
    assert(h->values.at[l].type == h->values.at[r].type);
    l = walk_convert(w, l, DT_F32), r = walk_convert(w, r, DT_F32);
    ValueId product = walk_binary(w, HLO_MULTIPLY, l, r);
    ValueId v = walk_sum(w, product, over, nover, hlo_type_tensor(h, DT_F32, (int)nleft, left));
    HloType out = *hlo_value_type(h, op->results);
    v = walk_transpose(w, walk_convert(w, v, out.dtype), order);
    return walk_reshape(w, v, out.rank, out.dims);
}

const Rule inner_rules[] = {{"product without free dimensions: the sum of an elementwise product", HLO_DOT_GENERAL, RULE_ORDER, inner}, {0}};
