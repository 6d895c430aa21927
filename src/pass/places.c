// SPDX-License-Identifier: Apache-2.0
// places.c — where the largest or smallest element of a row is, as reductions that the engines do.
// needs: values defined before use
// gives: argmax and argmin along rows of large tensors, as JAX writes them, are an extreme, a comparison with it, and the least place where
//        it holds, counted in fp32
// stale: nothing
//
//   reduce (x, iota) by (x1 > x2 or x1 is NaN) ? first : second, equal ones to the lower place
//     ──►  m = max(x);  min over (x == m or x is NaN ? place : n)
//
// The first NaN is the place of a row that has one: its maximum is NaN, and equals nothing.
#include <math.h>

#include "pass/rules.h"

#define PLACES_MIN 65536             // elements, and rows: below, the kernel costs less
#define ROWS_MIN 96
#define EXACT_MAX ((int64_t)1 << 24) // what fp32 counts to

// --- reading -----------------------------------------------------------------------------------------

static bool is_compare(const Hlo *h, ValueId v, int64_t direction, ValueId a, ValueId b) {
    const HloOp *op = hlo_def_as(h, v, HLO_COMPARE);
    return op && hlo_int(op, AK_COMPARISON_DIRECTION, -1) == direction && hlo_operand(h, op, 0) == a && hlo_operand(h, op, 1) == b &&
           hlo_int(op, AK_COMPARE_TYPE, CMPT_FLOAT) != CMPT_TOTALORDER;
}

// The region takes the first of two pairs when its value compares so, or is NaN; of equal ones the lower place.
static bool picks(const Hlo *h, const HloRegion *r, int64_t direction) {
    const HloOp *ret = hlo_at(h, r->ops.at[r->ops.n - 1]);
    ValueId x = r->args, i = r->args + 1, y = r->args + 2, j = r->args + 3;
    const HloOp *value = hlo_def_as(h, hlo_operand(h, ret, 0), HLO_SELECT), *place = hlo_def_as(h, hlo_operand(h, ret, 1), HLO_SELECT);
    if (!value || !place || hlo_operand(h, value, 1) != x || hlo_operand(h, value, 2) != y || hlo_operand(h, place, 1) != i ||
        hlo_operand(h, place, 2) != j)
        return false;
    ValueId better = hlo_operand(h, value, 0);
    const HloOp *either = hlo_def_as(h, better, HLO_OR), *first = hlo_def_as(h, hlo_operand(h, place, 0), HLO_OR);
    const HloOp *ties = first && hlo_operand(h, first, 0) == better ? hlo_def_as(h, hlo_operand(h, first, 1), HLO_AND) : NULL;
    return either && ties && is_compare(h, hlo_operand(h, either, 0), direction, x, y) &&
           is_compare(h, hlo_operand(h, either, 1), CMP_NE, x, x) && is_compare(h, hlo_operand(h, ties, 0), CMP_EQ, x, y) &&
           is_compare(h, hlo_operand(h, ties, 1), CMP_LT, i, j);
}

// The reduced dimension, which is the last with more than one element; -1: not such a reduction.
static int row_dim(const Hlo *h, const HloOp *op, int64_t *direction) {
    if (op->noperands != 4 || op->nresults != 2)
        return -1;
    const HloType *x = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results + 1);
    const HloOp *count = hlo_def_as(h, hlo_operand(h, op, 1), HLO_IOTA);
    const HloAttr *worst = splat_value(h, hlo_operand(h, op, 2)), *zero = splat_value(h, hlo_operand(h, op, 3));
    uint32_t n;
    const int64_t *dims = hlo_ints(op, AK_DIMENSIONS, &n);
    if (n != 1 || !count || !worst || !zero || x->elems < PLACES_MIN ||
        (x->dtype != DT_F32 && x->dtype != DT_BF16) || !dtype_is_int(out->dtype) || dtype_row(out->dtype)->bits < 32 ||
        hlo_int(count, AK_IOTA_DIMENSION, -1) != dims[0] || dtype_to_i64(out->dtype, zero->data) != 0)
        return -1;
    for (int i = (int)dims[0] + 1; i < x->rank; i++)
        if (x->dims[i] != 1)
            return -1;
    const HloRegion *r = hlo_op_region(h, op, 0);
    *direction = dtype_to_f64(x->dtype, worst->data) < 0 ? CMP_GT : CMP_LT;
    bool extreme = is_neutral(h, *direction == CMP_GT ? HLO_MAXIMUM : HLO_MINIMUM, hlo_operand(h, op, 2));
    bool fits = x->dims[dims[0]] > 1 && x->dims[dims[0]] < EXACT_MAX && x->elems / x->dims[dims[0]] >= ROWS_MIN && r->nargs == 4;
    return extreme && fits && picks(h, r, *direction) ? (int)dims[0] : -1;
}

// --- writing -----------------------------------------------------------------------------------------

static ValueId write(Walk *w, const HloOp *op) {
    Hlo *h = w->hlo;
    int64_t direction, dim = row_dim(h, op, &direction);
    if (dim < 0)
        return 0;
    ValueId x = hlo_operand(h, op, 0);
    const HloType t = *hlo_value_type(h, x), out = *hlo_value_type(h, op->results);
    TypeId wide = hlo_type_tensor(h, DT_F32, t.rank, t.dims), line = hlo_type_tensor(h, DT_F32, 1, &t.dims[dim]);
    int64_t kept[OTRN_MAX_RANK];
    uint32_t n = 0;
    for (int i = 0; i < t.rank; i++)
        if (i != dim)
            kept[n++] = i;
    assert(n + 1 == (uint32_t)t.rank && out.rank + 1 == t.rank);
    HloOpcode extreme = direction == CMP_GT ? HLO_MAXIMUM : HLO_MINIMUM;
    ValueId m = walk_reduce(w, extreme, x, hlo_operand(h, op, 2), &dim, 1, h->values.at[op->results].type);
    ValueId all = walk_broadcast(w, m, kept, n, h->values.at[x].type);
    ValueId is = walk_compare(w, CMP_EQ, CMPT_FLOAT, x, all), nan = walk_compare(w, CMP_NE, CMPT_FLOAT, x, x);
    ValueId hit = walk_binary(w, HLO_OR, is, nan);
    ValueId place = walk_broadcast(w, walk_iota(w, line, 0), &dim, 1, wide);
    ValueId far = walk_select(w, hit, place, walk_number(w, wide, (double)t.dims[dim]));
    ValueId none = walk_number(w, hlo_type_tensor(h, DT_F32, 0, NULL), (double)INFINITY);
    ValueId least = walk_reduce(w, HLO_MINIMUM, far, none, &dim, 1, hlo_type_tensor(h, DT_F32, out.rank, out.dims));
    walk_replace(w, op->results + 1, walk_convert(w, least, hlo_value_type(h, op->results + 1)->dtype));
    return m;
}

const Rule places_rules[] = {{"argmax, argmin along rows: an extreme, and the least place that has it", HLO_REDUCE, RULE_EXACT, write}, {0}};
