// SPDX-License-Identifier: Apache-2.0
// expand_qr.c — XLA's calls for QR decompositions, written as loops over columns.
//
//   @Qr(a) -> packed, taus                              a = H(0) H(1) … R with H(j) = I - tau v v^H, as LAPACK's geqrf has it
//   @ProductOfElementaryHouseholderReflectors(a, taus)  their product, as far as it has columns (orgqr, ungqr)
//
// TensorFlow's qr, solve, inverse, determinant and lstsq are made of them, and initial weights of recurrent layers. A step takes one
// column; it is chosen by a mask, so that all steps are the same program on whole matrices. Batches are one dimension: [b, m, n].
#include "pass/expand_mats.h"

// a - factor v (v^H a)
static ValueId reflected(Mats *q, ValueId a, ValueId v, ValueId factor) {
    ValueId w = mats_total(q, HLO_ADD, walk_binary(q->w, HLO_MULTIPLY, mats_wide(q, mats_conjugate(q, v), mats_at, q->all), a), 1, q->cols);
    ValueId scaled = walk_binary(q->w, HLO_MULTIPLY, mats_wide(q, factor, mats_at, q->rows), v);
    ValueId outer = walk_binary(q->w, HLO_MULTIPLY, mats_wide(q, scaled, mats_at, q->all), mats_wide(q, w, mats_outer, q->all));
    return walk_binary(q->w, HLO_SUBTRACT, a, outer);
}

// v of column x: 1 at the step's row, `below` under it.
static ValueId reflector(Mats *q, ValueId below, ValueId step) {
    ValueId here = mats_along(q, CMP_EQ, q->rows, 1, step);
    return walk_select(q->w, here, mats_number(q, q->rows, q->dtype, 1), mats_where(q, mats_along(q, CMP_GT, q->rows, 1, step), below, 0));
}

typedef struct House {
    ValueId v, tau, beta; // [b, m], [b], [b]
} House;

// Of column x [b, m] from the step's row on; where nothing is below it the matrix stays (tau 0). Lengths are taken of elements
// divided by the largest, so that squares neither overflow nor vanish.
static House house(Mats *q, ValueId x, ValueId step) {
    Walk *w = q->w;
    TypeId one = mats_typed(q, q->one, q->real);
    ValueId alpha = mats_total(q, HLO_ADD, mats_where(q, mats_along(q, CMP_EQ, q->rows, 1, step), x, 0), 1, q->one);
    ValueId size = walk_op(w, HLO_ABS, 1, &x, mats_typed(q, q->rows, q->real));
    ValueId from = mats_where(q, mats_along(q, CMP_GE, q->rows, 1, step), size, 0), below = mats_where(q, mats_along(q, CMP_GT, q->rows, 1, step), size, 0);
    ValueId largest = mats_total(q, HLO_MAXIMUM, from, 1, q->one), zero = walk_number(w, one, 0);
    ValueId finite = walk_op(w, HLO_IS_FINITE, 1, &largest, mats_typed(q, q->one, DT_I1));
    ValueId usual = walk_binary(w, HLO_AND, walk_compare(w, CMP_GT, CMPT_NOTYPE, largest, zero), finite);
    ValueId scale = mats_where(q, usual, largest, 1), part = walk_binary(w, HLO_DIVIDE, from, mats_wide(q, scale, mats_at, q->rows));
    ValueId square = mats_total(q, HLO_ADD, walk_binary(w, HLO_MULTIPLY, part, part), 1, q->one);
    ValueId length = walk_binary(w, HLO_MULTIPLY, walk_unary(w, HLO_SQRT, square), scale);
    ValueId re = alpha, other = mats_total(q, HLO_MAXIMUM, below, 1, q->one);
    if (dtype_is_complex(q->dtype)) {
        re = walk_op(w, HLO_REAL, 1, &alpha, one);
        other = walk_binary(w, HLO_MAXIMUM, other, walk_unary(w, HLO_ABS, walk_op(w, HLO_IMAG, 1, &alpha, one)));
    }
    ValueId stays = walk_compare(w, CMP_EQ, CMPT_NOTYPE, other, zero);
    ValueId turned = walk_select(w, walk_compare(w, CMP_GE, CMPT_NOTYPE, re, zero), walk_unary(w, HLO_NEGATE, length), length);
    ValueId beta = walk_convert(w, walk_select(w, stays, re, turned), q->dtype);
    ValueId none = mats_number(q, q->one, q->dtype, 0), unit = mats_number(q, q->one, q->dtype, 1);
    ValueId tau = walk_binary(w, HLO_DIVIDE, walk_binary(w, HLO_SUBTRACT, beta, alpha), walk_select(w, stays, unit, beta));
    ValueId by = walk_select(w, stays, unit, walk_binary(w, HLO_SUBTRACT, alpha, beta));
    ValueId v = reflector(q, walk_binary(w, HLO_DIVIDE, x, mats_wide(q, by, mats_at, q->rows)), step);
    return (House){v, walk_select(w, stays, none, tau), beta};
}

// --- the loops -----------------------------------------------------------------------------------------

// carried: the matrices, R above what is done and reflectors below; taus [b, k].
static void qr_step(Mats *q, ValueId step, const ValueId *carried, ValueId *next) {
    Walk *w = q->w;
    ValueId a = carried[0];
    House r = house(q, mats_column(q, a, step), step);
    ValueId turned = reflected(q, a, r.v, mats_conjugate(q, r.tau));
    ValueId done = walk_select(w, mats_along(q, CMP_EQ, q->all, 1, step), mats_wide(q, r.beta, mats_at, q->all), a);
    done = walk_select(w, mats_along(q, CMP_GT, q->all, 1, step), mats_wide(q, r.v, mats_at, q->all), done);
    next[0] = walk_select(w, mats_along(q, CMP_EQ, q->all, 2, step), done, a);
    next[0] = walk_select(w, mats_along(q, CMP_GT, q->all, 2, step), turned, next[0]);
    TypeId taus = mats_type_of(q, carried[1]);
    next[1] = walk_select(w, mats_along(q, CMP_EQ, taus, 1, step), mats_wide(q, r.tau, mats_at, taus), carried[1]);
}

// carried: the product, the reflectors, taus. H(j) goes to the product's left, the last first.
static void product_step(Mats *q, ValueId step, const ValueId *carried, ValueId *next) {
    ValueId v = reflector(q, mats_column(q, carried[1], step), step);
    ValueId tau = mats_total(q, HLO_ADD, mats_where(q, mats_along(q, CMP_EQ, mats_type_of(q, carried[2]), 1, step), carried[2], 0), 1, q->one);
    next[0] = reflected(q, carried[0], v, tau);
    next[1] = carried[1], next[2] = carried[2];
}

// --- which ---------------------------------------------------------------------------------------------

// The shapes of a call; an error where they do not fit each other.
static void qr_read(Mats *q, const HloOp *op, ValueId taus, ValueId result) {
    Hlo *h = q->w->hlo;
    mats_read(q, op);
    HloType a = *hlo_value_type(h, hlo_operand(h, op, 0)), t = *hlo_value_type(h, taus);
    bool fits = t.rank == a.rank - 1 && t.dtype == a.dtype && mats_type_of(q, result) == mats_type_of(q, hlo_operand(h, op, 0));
    for (int d = 0; fits && d < a.rank - 2; d++)
        fits = t.dims[d] == a.dims[d];
    if (!fits)
        mats_fail(q, op);
    q->k = t.dims[t.rank - 1];
    if (q->k > q->m || q->k > q->n)
        hlo_fail(h, q->w->id, OTRN_VERIFY, "%lld reflections of matrices of %lld x %lld", (long long)q->k, (long long)q->m, (long long)q->n);
}

ValueId expand_qr(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    bool product = mats_call(op) == MATS_PRODUCT;
    if (!product && mats_call(op) != MATS_QR)
        return 0;
    Mats q = {.w = w};
    qr_read(&q, op, product ? hlo_operand(h, op, 1) : op->results + 1, op->results);
    ValueId a = walk_shape(w, hlo_operand(h, op, 0), q.all);
    TypeId list = hlo_type_tensor(h, q.dtype, 2, (int64_t[]){q.b, q.k});
    ValueId out;
    if (product)
        out = mats_steps(&q, true, NULL, product_step, 3, (ValueId[]){mats_identity(&q), a, walk_shape(w, hlo_operand(h, op, 1), list)});
    else
        out = mats_steps(&q, false, NULL, qr_step, 2, (ValueId[]){a, mats_number(&q, list, q.dtype, 0)});
    if (!product)
        walk_replace(w, op->results + 1, walk_shape(w, out + 1, mats_type_of(&q, op->results + 1)));
    return walk_shape(w, out, mats_type_of(&q, op->results));
}
