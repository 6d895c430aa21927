// SPDX-License-Identifier: Apache-2.0
// expand_lu.c — XLA's call for LU decompositions with row exchanges, written as a loop over columns.
//
//   @LuDecomposition(a) -> lu, pivots, permutation      a[permutation] = L U; in step j rows j and pivots[j] were exchanged (getrf)
//
// JAX exports lu, det, solve and inv to it where they are meant for TPUs.
#include "pass/expand_mats.h"

// By which the largest is told: |x|, or for LAPACK |re| + |im|.
static ValueId size_of(Mats *q, ValueId x) {
    TypeId real = mats_typed(q, mats_type_of(q, x), q->real);
    if (!q->lapack || !dtype_is_complex(q->dtype))
        return walk_op(q->w, HLO_ABS, 1, &x, real);
    ValueId re = walk_op(q->w, HLO_REAL, 1, &x, real), im = walk_op(q->w, HLO_IMAG, 1, &x, real);
    return walk_binary(q->w, HLO_ADD, walk_unary(q->w, HLO_ABS, re), walk_unary(q->w, HLO_ABS, im));
}

static ValueId same(Mats *q, TypeId shape, ValueId one) { // is it the row that each matrix has told: one is [b]
    return walk_compare(q->w, CMP_EQ, CMPT_NOTYPE, mats_places(q, shape, 1), mats_wide(q, one, mats_at, mats_typed(q, shape, DT_I32)));
}

// The row of the column's largest element from the step's on, [b] of i32; the step's own where nothing is larger (NaNs, too).
static ValueId pivot(Mats *q, ValueId column, ValueId step) {
    Walk *w = q->w;
    TypeId one = mats_typed(q, q->one, DT_I32);
    ValueId size = size_of(q, column), from = mats_along(q, CMP_GE, q->rows, 1, step);
    ValueId largest = mats_total(q, HLO_MAXIMUM, mats_where(q, from, size, 0), 1, q->one);
    ValueId is = walk_compare(w, CMP_EQ, CMPT_NOTYPE, size, mats_wide(q, largest, mats_at, q->rows));
    ValueId left = walk_binary(w, HLO_SUBTRACT, walk_number(w, mats_typed(q, q->rows, DT_I32), (double)q->m), mats_places(q, q->rows, 1)); // m … 1
    ValueId first = mats_total(q, HLO_MAXIMUM, mats_where(q, walk_binary(w, HLO_AND, is, from), left, 0), 1, q->one);
    ValueId found = walk_binary(w, HLO_SUBTRACT, walk_number(w, one, (double)q->m), first);
    ValueId none = walk_compare(w, CMP_EQ, CMPT_NOTYPE, first, walk_number(w, one, 0));
    return walk_select(w, none, walk_broadcast(w, step, NULL, 0, one), found);
}

// Rows `here` and `there` of [b, m, n], or elements of [b, m], exchanged; the latter's go to *taken, [b, n] or [b].
static ValueId exchanged(Mats *q, ValueId v, ValueId here, ValueId there, TypeId row, ValueId *taken) {
    TypeId shape = mats_type_of(q, v);
    const int64_t *dims = hlo_type(q->w->hlo, row)->rank == 2 ? mats_outer : mats_at;
    ValueId at = same(q, shape, here), from = same(q, shape, there);
    ValueId other = mats_total(q, HLO_ADD, mats_where(q, at, v, 0), 1, row);
    *taken = mats_total(q, HLO_ADD, mats_where(q, from, v, 0), 1, row);
    ValueId moved = walk_select(q->w, from, mats_wide(q, other, dims, shape), v);
    return walk_select(q->w, at, mats_wide(q, *taken, dims, shape), moved);
}

// carried: the matrices, U above what is done and L below; pivots [b, k]; the permutation [b, m].
static void lu_step(Mats *q, ValueId step, const ValueId *carried, ValueId *next) {
    Walk *w = q->w;
    ValueId at = walk_broadcast(w, step, NULL, 0, mats_typed(q, q->one, DT_I32)), from = pivot(q, mats_column(q, carried[0], step), step), top, number;
    ValueId a = exchanged(q, carried[0], at, from, q->cols, &top);
    next[2] = exchanged(q, carried[2], at, from, q->one, &number);
    TypeId list = mats_type_of(q, carried[1]);
    next[1] = walk_select(w, mats_along(q, CMP_EQ, list, 1, step), mats_wide(q, from, mats_at, list), carried[1]);
    ValueId column = mats_column(q, a, step);
    ValueId first = mats_total(q, HLO_ADD, mats_where(q, mats_along(q, CMP_EQ, q->cols, 1, step), top, 0), 1, q->one);
    ValueId none = walk_compare(w, CMP_EQ, CMPT_NOTYPE, first, mats_number(q, q->one, q->dtype, 0));
    ValueId by = walk_select(w, none, mats_number(q, q->one, q->dtype, 1), first);
    ValueId factor = walk_binary(w, HLO_DIVIDE, column, mats_wide(q, by, mats_at, q->rows));
    ValueId wide = mats_wide(q, factor, mats_at, q->all), below = mats_along(q, CMP_GT, q->all, 1, step);
    ValueId less = walk_binary(w, HLO_SUBTRACT, a, walk_binary(w, HLO_MULTIPLY, wide, mats_wide(q, top, mats_outer, q->all)));
    ValueId inner = walk_select(w, mats_along(q, CMP_GT, q->all, 2, step), less, a);
    inner = walk_select(w, mats_along(q, CMP_EQ, q->all, 2, step), wide, inner);
    next[0] = walk_select(w, below, inner, a);
}

ValueId expand_lu(Walk *w, const HloOp *op) { return mats_call(op) == MATS_LU ? mats_lu(w, op, false) : 0; }

ValueId mats_lu(Walk *w, const HloOp *op, bool lapack) {
    Hlo *h = w->hlo;
    Mats q = {.w = w, .lapack = lapack};
    mats_read(&q, op);
    q.k = q.m < q.n ? q.m : q.n;
    TypeId list = hlo_type_tensor(h, DT_I32, 2, (int64_t[]){q.b, q.k});
    for (uint32_t i = 0; i < 3; i++) {
        HloType t = *hlo_value_type(h, op->results + i);
        int64_t n = q.b * (i == 0 ? q.m * q.n : i == 1 ? q.k : q.m);
        if (!hlo_is_plain(&t) || t.elems != n || t.dtype != (i ? DT_I32 : q.dtype))
            mats_fail(&q, op);
    }
    ValueId a = walk_shape(w, hlo_operand(h, op, 0), q.all);
    ValueId out = mats_steps(&q, false, NULL, lu_step, 3, (ValueId[]){a, walk_number(w, list, 0), mats_places(&q, q.rows, 1)});
    for (uint32_t i = 1; i < 3; i++)
        walk_replace(w, op->results + i, walk_shape(w, out + i, mats_type_of(&q, op->results + i)));
    return walk_shape(w, out, mats_type_of(&q, op->results));
}
