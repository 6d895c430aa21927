// SPDX-License-Identifier: Apache-2.0
// query.c — answers from the operation itself; nothing here changes a graph but reduce_region_like.
#include "hlo/query.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/dtype.h"

uint16_t region_combiner(const Hlo *h, const HloRegion *r) {
    if (r->nargs != 2 || r->ops.n != 2)
        return HLO_NONE;
    const HloOp *op = hlo_at(h, r->ops.at[0]), *ret = hlo_at(h, r->ops.at[1]);
    if (hlo_row(op)->cls != HC_EW2 || op->noperands != 2 || op->nresults != 1 || ret->code != HLO_RETURN || ret->noperands != 1 ||
        hlo_operand(h, ret, 0) != op->results)
        return HLO_NONE;
    ValueId a = hlo_operand(h, op, 0), b = hlo_operand(h, op, 1);
    return (a == r->args && b == r->args + 1) || (a == r->args + 1 && b == r->args) ? op->code : HLO_NONE;
}

uint16_t reduce_body(const Hlo *h, const HloOp *op) {
    if (op->code != HLO_REDUCE || op->noperands != 2 || op->nresults != 1 || op->nregions != 1)
        return HLO_NONE;
    const HloRegion *r = hlo_op_region(h, op, 0);
    uint16_t code = region_combiner(h, r);
    bool same = code && h->values.at[hlo_at(h, r->ops.at[0])->results].type == h->values.at[hlo_operand(h, hlo_at(h, r->ops.at[0]), 0)].type;
    return same ? code : HLO_NONE;
}

void reduce_region_like(Hlo *h, const HloOp *like, OpId made, TypeId scalar) {
    hlo_op_add_combiner(h, made, reduce_body(h, like), scalar);
}

const HloAttr *splat_value(const Hlo *h, ValueId v) {
    OpId def = h->values.at[v].def;
    if (!def || hlo_at(h, def)->code != HLO_CONSTANT)
        return NULL;
    const HloAttr *a = hlo_attr(hlo_at(h, def), AK_VALUE);
    if (!a || a->kind != HA_TENSOR || hlo_type(h, a->type)->text)
        return NULL;
    return a->n == dtype_bytes(hlo_type(h, a->type)->dtype) ? a : NULL;
}

bool splat_f64(const Hlo *h, ValueId v, double *x) {
    const HloAttr *a = splat_value(h, v);
    int dtype = hlo_value_type(h, v)->dtype;
    if (!a || !dtype_is_float(dtype))
        return false;
    *x = dtype_to_f64(dtype, a->data);
    return true;
}

bool constant_int(const Hlo *h, ValueId v, int64_t *out) {
    const HloAttr *a = splat_value(h, v);
    const HloType *t = hlo_value_type(h, v);
    if (!a || t->elems != 1 || !dtype_is_int(t->dtype))
        return false;
    *out = dtype_to_i64(t->dtype, a->data);
    return true;
}

bool is_reshape(const Hlo *h, const HloOp *op) {
    if (op->code != HLO_BROADCAST_IN_DIM)
        return op->code == HLO_RESHAPE;
    uint32_t n;
    const int64_t *to = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    for (uint32_t i = 1; i < n; i++)
        if (to[i] < to[i - 1])
            return false;
    return hlo_value_type(h, op->results)->elems == hlo_value_type(h, hlo_operand(h, op, 0))->elems;
}

bool is_neutral(const Hlo *h, uint16_t code, ValueId v) {
    const HloAttr *a = splat_value(h, v);
    if (!a)
        return false;
    int dtype = hlo_type(h, a->type)->dtype;
    if (dtype_is_float(dtype)) {
        double x = dtype_to_f64(dtype, a->data);
        switch (code) {
        case HLO_ADD:
            return x == 0 && signbit(x);
        case HLO_SUBTRACT:
            return x == 0 && !signbit(x);
        case HLO_MULTIPLY:
        case HLO_DIVIDE:
            return x == 1;
        case HLO_MAXIMUM:
            return x == -INFINITY;
        case HLO_MINIMUM:
            return x == INFINITY;
        default:
            return false;
        }
    }
    if (!dtype_is_int(dtype) && dtype != DT_I1)
        return false;
    int64_t x = dtype_to_i64(dtype, a->data);
    bool flag = dtype == DT_I1;
    switch (code) {
    case HLO_ADD:
        return !flag && x == 0;
    case HLO_SUBTRACT:
        return !flag && x == 0;
    case HLO_MULTIPLY:
    case HLO_DIVIDE:
        return !flag && x == 1;
    case HLO_AND:
        return flag && x;
    case HLO_OR:
    case HLO_XOR:
        return x == 0;
    default:
        return false;
    }
}

const IndexKeys index_of_gather = {AK_OFFSET_DIMS, AK_COLLAPSED_SLICE_DIMS, AK_OPERAND_BATCHING_DIMS, AK_START_INDICES_BATCHING_DIMS, AK_START_INDEX_MAP};
const IndexKeys index_of_scatter = {AK_UPDATE_WINDOW_DIMS, AK_INSERTED_WINDOW_DIMS, AK_INPUT_BATCHING_DIMS, AK_SCATTER_INDICES_BATCHING_DIMS,
                                    AK_SCATTER_DIMS_TO_OPERAND_DIMS};

bool op_has_effect(const Hlo *h, const HloOp *op) {
    if (hlo_is(op, OT_EFFECT))
        return true;
    if (op->code == HLO_CUSTOM_CALL && (hlo_int(op, AK_HAS_SIDE_EFFECT, 0) || op->nresults == 0 ||
                                        !strncmp(hlo_attr_str(op, AK_CALL_TARGET_NAME), "check.", 6))) // may fail the run
        return true;
    for (uint32_t r = 0; r < op->nregions; r++) {
        const HloRegion *region = hlo_op_region(h, op, r);
        for (uint32_t i = 0; i < region->ops.n; i++) {
            const HloOp *inner = hlo_at(h, region->ops.at[i]);
            if (inner->code != HLO_RETURN && op_has_effect(h, inner))
                return true;
        }
    }
    return false;
}

// The same for all elements, or for those of a row: an instruction does it beside another operation.
static bool is_spread(const Hlo *h, ValueId v) {
    const HloOp *op = h->values.at[v].def ? hlo_at(h, h->values.at[v].def) : NULL;
    return op && (op->code == HLO_CONSTANT ||
                  (op->code == HLO_BROADCAST_IN_DIM && hlo_value_type(h, v)->elems > hlo_value_type(h, hlo_operand(h, op, 0))->elems));
}

static const struct {
    bool alu, act;
} engines[HLO_OPCODE_COUNT] = {
#define OP(e, ...)
#define ALU(op) .alu = true
#define ACT(fn) .act = true
#define NONE 0
#define EW(e, dialect, name, operands, types, result, steps, evaluator, engine, ...) [HLO_##e] = {engine},
#include "hlo/ops.def"
#undef NONE
#undef ACT
#undef ALU
};

bool hlo_is_taken_along(const Hlo *h, const HloOp *op, const HloOp *reader) {
    const HloType *t = hlo_value_type(h, op->results);
    uint32_t n;
    if ((op->code != HLO_ADD && op->code != HLO_SUBTRACT && op->code != HLO_MULTIPLY) || t->dtype != DT_F32 || !engines[reader->code].act)
        return false;
    const HloOp *by = hlo_def(h, hlo_operand(h, op, 1));
    const int64_t *dims = by && by->code == HLO_BROADCAST_IN_DIM ? hlo_ints(by, AK_BROADCAST_DIMENSIONS, &n) : NULL;
    return by && (by->code == HLO_CONSTANT || (dims && (!n || dims[n - 1] != t->rank - 1 || hlo_value_type(h, hlo_operand(h, by, 0))->dims[n - 1] == 1)));
}

double hlo_instructions(const Hlo *h, const HloOp *op) {
    assert(hlo_is_elementwise(op));
    if (op->code == HLO_CONVERT || op->code == HLO_NEGATE) // how another instruction reads or writes
        return 0.25;
    for (uint32_t k = 0; k < op->noperands; k++)
        if (is_spread(h, hlo_operand(h, op, k)))
            return 0.5;
    return op->code == HLO_DIVIDE || op->code == HLO_POWER ? 3 : 1;
}
