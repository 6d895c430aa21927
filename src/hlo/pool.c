// SPDX-License-Identifier: Apache-2.0
// pool.c — reads the attributes and the region of a reduce_window.
#include "hlo/pool.h"

#include "base/dtype.h"
#include "hlo/query.h"

static uint16_t body_of(const Hlo *h, const HloOp *op) {
    uint16_t code = region_combiner(h, hlo_op_region(h, op, 0));
    return code == HLO_ADD || code == HLO_MAXIMUM || code == HLO_MINIMUM ? code : HLO_NONE;
}

static bool fits(const HloType *t) {
    bool is_float = t->dtype == DT_F32 || t->dtype == DT_BF16 || t->dtype == DT_F16;
    return t->kind == HT_TENSOR && !t->dynamic && !t->text && is_float && t->elems > 0 && t->elems < INT32_MAX &&
           t->rank > 0 && t->rank <= POOL_RANK_MAX;
}

PoolAxis pool_axis(const HloOp *op, uint32_t i, int64_t in, int64_t out) {
    return (PoolAxis){.in = in, .out = out, .window = hlo_int_at(op, AK_WINDOW_DIMENSIONS, i, 1),
                      .stride = hlo_int_at(op, AK_WINDOW_STRIDES, i, 1), .gap = hlo_int_at(op, AK_WINDOW_DILATIONS, i, 1),
                      .low = hlo_int_at(op, AK_PADDING, 2 * i, 0), .high = hlo_int_at(op, AK_PADDING, 2 * i + 1, 0),
                      .in_gap = hlo_int_at(op, AK_BASE_DILATIONS, i, 1)};
}

bool pool_read(const Hlo *h, const HloOp *op, PoolForm *f) {
    if (op->code != HLO_REDUCE_WINDOW || op->noperands != 2 || op->nresults != 1)
        return false;
    const HloType *x = hlo_value_type(h, hlo_operand(h, op, 0)), *y = hlo_value_type(h, op->results);
    const HloAttr *init = splat_value(h, hlo_operand(h, op, 1));
    *f = (PoolForm){.rank = x->rank, .taps = 1, .code = body_of(h, op)};
    if (!f->code || !fits(x) || !fits(y) || x->dtype != y->dtype || !init)
        return false;
    bool neutral = f->code == HLO_ADD ? dtype_to_f64(x->dtype, init->data) == 0
                                      : is_neutral(h, f->code, hlo_operand(h, op, 1));
    for (int i = 0; i < f->rank; i++) {
        PoolAxis a = pool_axis(op, (uint32_t)i, x->dims[i], y->dims[i]);
        if (a.window > POOL_TAPS_MAX || a.stride > INT32_MAX || a.gap > INT32_MAX || a.in_gap > INT32_MAX)
            return false;
        f->taps *= a.window;
        f->axis[i] = a;
        if (f->taps > POOL_TAPS_MAX)
            return false;
    }
    return neutral && f->taps > 1;
}

bool pool_is_inside(const PoolForm *f) {
    for (int i = 0; i < f->rank; i++)
        if (f->axis[i].low > 0 || f->axis[i].high > 0 || f->axis[i].low < 0 || f->axis[i].in_gap > 1)
            return false;
    return true;
}
