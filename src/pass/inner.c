// SPDX-License-Identifier: Apache-2.0
// inner.c — inner products of many pairs of vectors, or of two long ones, as elementwise products and sums; outer ones of short vectors as elementwise products.
// needs: values defined before use
// gives: no large dot_general whose operands have batch and contracting dimensions only, or that contracts nothing and has few rows or columns; no
//   convolution that is a product over patches (conv_patch.c)
// stale: nothing
//
//   [b d] · [b d] -> [b]       ──►  the sum along d of lhs * rhs
//   [b m] · [b n] -> [b m n]   ──►  lhs * rhs, both broadcast, where m or n is small: 1 where numbers scale vectors
//
// The array would use one of its columns, or rows, at a time; row programs read each operand once, and that is all there is to do.
#include "hlo/dot.h"
#include "pass/convs.h"
#include "pass/rules.h"

#define INNER_MIN 16384 // elements
#define OUTER_MIN 32    // rows and columns of a product without contraction that the array is right for

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
           elems > batches;
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

// An operand of a product without contraction as the result has it: its batch dimensions first, its free ones from `free` on.
static ValueId spread(Walk *w, const HloOp *op, int side, int64_t free, TypeId to) {
    DotDims by = dot_dims(op);
    ValueId v = walk_convert(w, hlo_operand(w->hlo, op, side), hlo_type(w->hlo, to)->dtype);
    HloType t = *hlo_value_type(w->hlo, v);
    int64_t perm[OTRN_MAX_RANK], dims[OTRN_MAX_RANK];
    uint32_t n = dot_free_dims(&t, op, side, perm + by.nb);
    assert(by.nb + n == t.rank);
    for (uint32_t i = 0; i < t.rank; i++) {
        perm[i] = i < by.nb ? by.batch[side][i] : perm[i];
        dims[i] = i < by.nb ? i : free + i - by.nb;
    }
    return walk_broadcast(w, walk_transpose(w, v, perm), dims, t.rank, to);
}

static ValueId outer(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    HloType l = *hlo_value_type(h, hlo_operand(h, op, 0)), r = *hlo_value_type(h, hlo_operand(h, op, 1)), out = *hlo_value_type(h, op->results);
    if (!dot_on_tensor_engine(h, op) || dot_dims(op).nc || out.elems < INNER_MIN || (out.elems / l.elems >= OUTER_MIN && out.elems / r.elems >= OUTER_MIN))
        return 0;
    TypeId wide = hlo_type_tensor(h, DT_F32, out.rank, out.dims);
    ValueId x = spread(w, op, 0, dot_dims(op).nb, wide), y = spread(w, op, 1, l.rank, wide);
    return walk_convert(w, walk_binary(w, HLO_MULTIPLY, x, y), out.dtype);
}

const Rule inner_rules[] = {
    {"product of short vectors that contracts nothing: the elementwise product", HLO_DOT_GENERAL, RULE_ZERO, outer},
    {"product without free dimensions: the sum of an elementwise product", HLO_DOT_GENERAL, RULE_ORDER, inner},
    {"convolution by patches of few channels: a product over them", HLO_CONVOLUTION, RULE_ORDER, conv_by_patches},
    {0},
};
