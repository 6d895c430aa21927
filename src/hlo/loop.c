// SPDX-License-Identifier: Apache-2.0
// loop.c — reads condition and body of a while that counts.
#include "hlo/loop.h"

#include "hlo/query.h"

bool loop_number_fits(int dtype, __int128 lo, __int128 hi) {
    int bits = dtype_row(dtype)->bits;
    bool is_signed = dtype_row(dtype)->cls == DC_SINT;
    if (dtype == DT_I1)
        return lo >= 0 && hi <= 1;
    if (!dtype_is_int(dtype))
        return false;
    __int128 top = (__int128)1 << (is_signed ? bits - 1 : bits);
    return lo >= (is_signed ? -top : 0) && hi < top;
}

bool loop_count(const Hlo *h, const HloOp *op, LoopCount *out) {
    const HloRegion *cond = hlo_op_region(h, op, 0), *body = hlo_op_region(h, op, 1);
    OpId def = h->values.at[hlo_operand(h, region_return(h, cond), 0)].def;
    if (!def || hlo_at(h, def)->code != HLO_COMPARE)
        return false;
    const HloOp *cmp = hlo_at(h, def);
    int64_t dir = hlo_int(cmp, AK_COMPARISON_DIRECTION, -1), begin, end, step;
    ValueId i = hlo_operand(h, cmp, 0);
    if (h->values.at[i].region != h->op_regions.at[op->regions] || !constant_int(h, hlo_operand(h, cmp, 1), &end) ||
        (dir != CMP_LT && dir != CMP_LE))
        return false;
    uint32_t k = h->values.at[i].index;
    OpId next = h->values.at[hlo_operand(h, region_return(h, body), k)].def;
    if (!constant_int(h, hlo_operand(h, op, k), &begin) || !next || hlo_at(h, next)->code != HLO_ADD)
        return false;
    const HloOp *add = hlo_at(h, next);
    uint32_t self = hlo_operand(h, add, 0) == body->args + k ? 0 : 1;
    if (hlo_operand(h, add, self) != body->args + k || !constant_int(h, hlo_operand(h, add, !self), &step) || step <= 0)
        return false;
    __int128 span = (__int128)end - begin + (dir == CMP_LE), trips = (span + step - 1) / step;
    if (span <= 0 || trips > INT32_MAX || begin + trips * step > INT64_MAX || !loop_number_fits(hlo_value_type(h, i)->dtype, begin, begin + trips * step))
        return false;
    *out = (LoopCount){.first = begin, .step = step, .trips = (int64_t)trips, .counter = k};
    return true;
}

typedef struct Linear { // mul * i + add
    __int128 mul, add;
} Linear;

static bool linear(const Hlo *h, ValueId v, ValueId counter, int depth, Linear *out) {
    int64_t number;
    const HloOp *op = hlo_def(h, v);
    Linear a, b = {0};
    *out = (Linear){.mul = v == counter};
    if (v == counter)
        return true;
    if (constant_int(h, v, &number)) {
        out->add = number;
        return true;
    }
    if (!op || !depth || !op->noperands || !linear(h, hlo_operand(h, op, 0), counter, depth - 1, &a) ||
        (op->noperands == 2 && !linear(h, hlo_operand(h, op, 1), counter, depth - 1, &b)))
        return false;
    switch (op->code) {
    case HLO_RESHAPE:
    case HLO_CONVERT:
        *out = a;
        return true;
    case HLO_ADD:
        *out = (Linear){a.mul + b.mul, a.add + b.add};
        return true;
    case HLO_SUBTRACT:
        *out = (Linear){a.mul - b.mul, a.add - b.add};
        return true;
    default:
        return false;
    }
}

bool loop_goes_over(const Hlo *h, const HloOp *op, const LoopCount *count, ValueId v) {
    Linear at;
    if (!linear(h, v, hlo_op_region(h, op, 1)->args + count->counter, 8, &at))
        return false;
    __int128 by = at.mul * count->step, first = at.add + at.mul * count->first;
    return (by == 1 && !first) || (by == -1 && first == count->trips - 1);
}
