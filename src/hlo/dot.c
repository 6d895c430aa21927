// SPDX-License-Identifier: Apache-2.0
// dot.c — what a product is: its types, and which dimensions of its operands lie as one.
#include "hlo/dot.h"

#include <assert.h>

#include "hlo/query.h"

const HloAttrKey dot_batch_key[2] = {AK_LHS_BATCHING_DIMENSIONS, AK_RHS_BATCHING_DIMENSIONS};
const HloAttrKey dot_contract_key[2] = {AK_LHS_CONTRACTING_DIMENSIONS, AK_RHS_CONTRACTING_DIMENSIONS};

DotDims dot_dims(const HloOp *op) {
    DotDims d;
    assert(op->code == HLO_DOT_GENERAL);
    for (int side = 0; side < 2; side++) {
        d.batch[side] = hlo_ints(op, dot_batch_key[side], &d.nb);
        d.contract[side] = hlo_ints(op, dot_contract_key[side], &d.nc);
    }
    return d;
}

int64_t dot_contracted(const Hlo *h, const HloOp *op) {
    DotDims d = dot_dims(op);
    int64_t k = 1;
    for (uint32_t i = 0; i < d.nc; i++)
        k *= hlo_value_type(h, hlo_operand(h, op, 0))->dims[d.contract[0][i]];
    return k;
}

bool dot_group(const HloType *t, const int64_t *dims, uint32_t n, int64_t *size, int64_t *stride) {
    int64_t strides[OTRN_MAX_RANK];
    int64_t s = 1;
    for (int i = t->rank; i-- > 0;) {
        strides[i] = s;
        s *= t->dims[i];
    }
    *size = 1;
    *stride = 1;
    for (uint32_t i = n; i-- > 0;) {
        int64_t d = t->dims[dims[i]];
        if (d == 1)
            continue;
        if (*size == 1)
            *stride = strides[dims[i]];
        else if (strides[dims[i]] != *stride * *size)
            return false;
        *size *= d;
    }
    return true;
}

uint32_t dot_free_dims(const HloType *t, const HloOp *op, bool rhs, int64_t out[OTRN_MAX_RANK]) {
    DotDims of = dot_dims(op);
    uint32_t n = 0;
    for (int64_t d = 0; d < t->rank; d++)
        if (!hlo_among(of.batch[rhs], of.nb, d) && !hlo_among(of.contract[rhs], of.nc, d))
            out[n++] = d;
    return n;
}

bool dot_suits(const Hlo *h, const HloOp *op, Why *why) {
    if (op->code != HLO_DOT_GENERAL)
        return false;
    const HloType *l = hlo_value_type(h, hlo_operand(h, op, 0));
    const HloType *r = hlo_value_type(h, hlo_operand(h, op, 1));
    const HloType *o = hlo_value_type(h, op->results);
    const HloType *types[] = {l, r, o};
    for (int i = 0; i < 3; i++)
        if (!dtype_on_tensor_engine(types[i]->dtype))
            return dtype_is_float(types[i]->dtype) && dtype_row(types[i]->dtype)->bits < 64
                       ? why_refuse_type(why, WHY_PRODUCT_TYPES, types[i]->dtype)
                       : why_refuse_elements(why, types[i]->dtype);
    return (l->elems > 0 && r->elems > 0) || why_refuse(why, WHY_EMPTY);
}

bool dot_may_swap(const Hlo *h, const HloOp *op) {
    const HloAttr *l = hlo_attr(op, AK_LHS_PRECISION_TYPE), *r = hlo_attr(op, AK_RHS_PRECISION_TYPE);
    bool parts = hlo_int(op, AK_LHS_COMPONENT_COUNT, 1) == hlo_int(op, AK_RHS_COMPONENT_COUNT, 1);
    bool types = l && r ? l->kind == HA_TYPE && r->kind == HA_TYPE && l->type == r->type : !l && !r;
    return parts && types && hlo_value_type(h, hlo_operand(h, op, 0))->dtype == hlo_value_type(h, hlo_operand(h, op, 1))->dtype;
}
