// SPDX-License-Identifier: Apache-2.0
// expand_eigh.c — XLA's call for eigenvalues of symmetric (Hermitian) matrices, by Jacobi's rotations.
//
//   @Eigh(a) -> v, w      a v = v w; backend_config says whether the lower triangle counts and whether w ascends ("1,1,100,1e-6")
//
// A round rotates disjoint pairs of columns and rows (expand_turn.c), so that the element of each pair becomes zero. It ends when what is
// off the diagonal has vanished beside the whole, or after 30 sweeps. Source: Golub and Van Loan, Matrix Computations, 8.5.
#include "pass/expand_mats.h"

#include <math.h>
#include <string.h>


// carried: the matrices, the product of the rotations, and what off-diagonal elements may be left (real, [b]).
static void eigh_step(Mats *q, ValueId step, const ValueId *carried, ValueId *next) {
    Walk *w = q->w;
    ValueId a = carried[0], pair = turn_pairs(q, step), same = mats_compared(q, CMP_EQ, mats_places(q, q->all, 1), mats_places(q, q->all, 2));
    ValueId own = mats_real(q, mats_diagonal(q, a, 2));
    Turn t = turn_of(q, pair, own, mats_total(q, HLO_ADD, mats_where(q, pair, a, 0), 2, q->rows));
    ValueId made = mats_where(q, pair, mats_number(q, q->all, q->dtype, 0), 0);
    made = walk_select(w, pair, made, turn_rows(q, &t, turn_columns(q, &t, a)));
    ValueId diagonal = mats_minus(q, own, t.change);
    next[0] = walk_select(w, same, mats_wide(q, mats_element(q, diagonal), mats_at, q->all), made);
    next[1] = turn_columns(q, &t, carried[1]);
    next[2] = carried[2];
}

static ValueId squares(Mats *q, ValueId v) { // their sum, [b]
    ValueId size = mats_size(q, v);
    return mats_total(q, HLO_ADD, mats_total(q, HLO_ADD, mats_times(q, size, size), 2, q->rows), 1, q->one);
}

static ValueId eigh_more(Mats *q, const ValueId *carried) {
    ValueId off = mats_compared(q, CMP_NE, mats_places(q, q->all, 1), mats_places(q, q->all, 2));
    ValueId left = mats_minus(q, squares(q, mats_where(q, off, carried[0], 0)), carried[2]);
    TypeId scalar = hlo_type_tensor(q->w->hlo, q->real, 0, NULL);
    ValueId zero = walk_number(q->w, scalar, 0);
    return mats_compared(q, CMP_GT, mats_total(q, HLO_MAXIMUM, left, 0, scalar), zero);
}

// Its triangle and that one's mirror image, with a real diagonal.
static ValueId hermitian(Mats *q, ValueId a, bool lower) {
    static const int64_t perm[3] = {0, 2, 1};
    ValueId i = mats_places(q, q->all, 1), j = mats_places(q, q->all, 2), mirror = mats_conjugate(q, walk_transpose(q->w, a, perm));
    ValueId chosen = walk_select(q->w, mats_compared(q, lower ? CMP_GT : CMP_LT, i, j), a, mirror);
    return walk_select(q->w, mats_compared(q, CMP_EQ, i, j), mats_element(q, mats_real(q, a)), chosen);
}

static void eigh_check(Mats *q, const HloOp *op) {
    HloType v = *hlo_value_type(q->w->hlo, op->results), t = *hlo_value_type(q->w->hlo, op->results + 1);
    if (q->m != q->n || mats_type_of(q, op->results) != mats_type_of(q, hlo_operand(q->w->hlo, op, 0)) || !hlo_is_plain(&t) ||
        t.rank != v.rank - 1 || t.dtype != q->real || t.elems != q->b * q->n)
        mats_fail(q, op);
}

ValueId expand_eigh(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    if (mats_call(op) != MATS_EIGH)
        return 0;
    const char *config = hlo_attr(op, AK_BACKEND_CONFIG) && hlo_attr(op, AK_BACKEND_CONFIG)->kind == HA_STR ? hlo_attr_str(op, AK_BACKEND_CONFIG) : "1,1";
    bool lower = config[0] != '0', ascends = strlen(config) < 3 || config[2] != '0';
    Mats q = {.w = w};
    mats_read(&q, op);
    eigh_check(&q, op);
    q.k = TURN_SWEEPS * turn_rounds(q.n);
    ValueId scale, finite, a = mats_scaled(&q, hermitian(&q, walk_shape(w, hlo_operand(h, op, 0), q.all), lower), &scale, &finite);
    double eps = q.real == DT_F64 ? 0x1p-52 : 0x1p-23;
    ValueId goal = mats_times(&q, squares(&q, a), walk_number(w, mats_type_of(&q, scale), eps * eps));
    ValueId out = mats_steps(&q, false, eigh_more, eigh_step, 3, (ValueId[]){a, mats_identity(&q), goal}), v = out + 1;
    ValueId values = mats_times(&q, mats_real(&q, mats_diagonal(&q, out, 2)), mats_wide(&q, scale, mats_at, q.rows));
    if (ascends)
        turn_sort(&q, &q, &v, &values);
    values = mats_where(&q, mats_wide(&q, finite, mats_at, q.rows), values, NAN);
    v = mats_where(&q, mats_wide(&q, finite, mats_at, q.all), v, NAN);
    walk_replace(w, op->results + 1, walk_shape(w, values, mats_type_of(&q, op->results + 1)));
    return walk_shape(w, v, mats_type_of(&q, op->results));
}
