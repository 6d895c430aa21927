// SPDX-License-Identifier: Apache-2.0
// eval_cmp.c — compare, select, clamp.
#include <math.h>

#include "hlo/eval_in.h"

typedef enum Order { LESS, EQUAL, GREATER, UNORDERED } Order;

static bool holds(int64_t direction, Order o) {
    switch (direction) {
    case CMP_EQ:
        return o == EQUAL;
    case CMP_NE:
        return o != EQUAL; // NaN differs from everything
    case CMP_GE:
        return o == GREATER || o == EQUAL;
    case CMP_GT:
        return o == GREATER;
    case CMP_LE:
        return o == LESS || o == EQUAL;
    default:
        return o == LESS;
    }
}

static Order order_f64(double x, double y) {
    return x < y ? LESS : x > y ? GREATER : x == y ? EQUAL : UNORDERED;
}

static Order order_u64(uint64_t x, uint64_t y) {
    return x < y ? LESS : x > y ? GREATER : EQUAL;
}

// -NaN < -inf < … < -0 < +0 < … < +inf < +NaN: flip negatives, set the sign of the others, then
// compare as unsigned. Formats without a sign are ordered already.
static uint64_t total_order_key(int dtype, const void *p) {
    uint64_t u = 0;
    size_t bytes = dtype_bytes(dtype);
    memcpy(&u, p, bytes);
    if (dtype_row(dtype)->flavour == FF_E8M0)
        return u;
    bool fnuz = dtype_row(dtype)->flavour == FF_FNUZ;
    if (fnuz && u == 0x80) // their one NaN has its sign bit set: before all others
        return 0;
    int bits = dtype == DT_TF32 ? 32 : dtype_row(dtype)->bits;
    uint64_t sign = 1ull << (bits - 1), mask = sign | (sign - 1);
    return fnuz + (u & sign ? ~u & mask : u | sign);
}

static Order order_elem(int dtype, bool total, const void *a, const void *b) {
    double x[2], y[2];
    if (total)
        return order_u64(total_order_key(dtype, a), total_order_key(dtype, b));
    eval_load(dtype, a, 0, 1, x);
    eval_load(dtype, b, 0, 1, y);
    switch (eval_wide_kind(dtype)) {
    case WIDE_F:
        return order_f64(x[0], y[0]);
    case WIDE_C: { // lexicographic
        Order re = order_f64(x[0], y[0]), im = order_f64(x[1], y[1]);
        if (re == UNORDERED || im == UNORDERED)
            return UNORDERED;
        return re == EQUAL ? im : re;
    }
    default: {
        int64_t i, j;
        memcpy(&i, x, 8);
        memcpy(&j, y, 8);
        if (dtype_row(dtype)->cls == DC_SINT)
            return i < j ? LESS : i > j ? GREATER : EQUAL;
        return order_u64((uint64_t)i, (uint64_t)j);
    }
    }
}

void eval_compare(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloOp *op = eval_op_at(e, id);
    const HloType *s = eval_type(e, in[0]), *t = eval_type(e, out[0]);
    eval_need(e, id, in[0].type == in[1].type && hlo_same_dims(s, t) && t->dtype == DT_I1,
              "takes two tensors of one type, gives i1 of their shape");
    int64_t direction = hlo_int(op, AK_COMPARISON_DIRECTION, -1);
    eval_need(e, id, direction >= CMP_EQ && direction <= CMP_LT, "unknown comparison_direction");
    bool total = hlo_int(op, AK_COMPARE_TYPE, CMPT_NOTYPE) == CMPT_TOTALORDER;
    eval_need(e, id, !total || dtype_is_float(s->dtype), "TOTALORDER compares floats");
    const uint8_t *a = in[0].data, *b = in[1].data;
    uint8_t *dst = out[0].data = eval_new(e, out[0].type);
    size_t elem = dtype_bytes(s->dtype);
    for (int64_t i = 0; i < t->elems; i++, a += elem, b += elem)
        dst[i] = holds(direction, order_elem(s->dtype, total, a, b));
}

void eval_select(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *p = eval_type(e, in[0]), *t = eval_type(e, out[0]);
    eval_need(e, id, p->dtype == DT_I1 && (p->rank == 0 || hlo_same_dims(p, t)),
              "pred must be a scalar or of the result's shape");
    eval_need(e, id, in[1].type == out[0].type && in[2].type == out[0].type,
              "on_true, on_false and result must have one type");
    const uint8_t *pred = in[0].data, *a = in[1].data, *b = in[2].data;
    size_t elem = dtype_bytes(t->dtype), step = p->rank ? 1 : 0;
    uint8_t *dst = out[0].data = eval_new(e, out[0].type);
    if (p->rank == 0) {
        memcpy(dst, *pred ? a : b, hlo_type_bytes(t));
        return;
    }
    for (size_t i = 0; i < (size_t)t->elems; i++) {
        const uint8_t *from = (pred[i * step] ? a : b) + i * elem;
        if (elem == 4)
            memcpy(dst + i * 4, from, 4);
        else
            memcpy(dst + i * elem, from, elem);
    }
}

// minimum(maximum(x, lo), hi); the bounds are scalars or of x's shape
void eval_clamp(Eval *e, OpId id, const Tensor *in, Tensor *out) {
    const HloType *t = eval_type(e, out[0]);
    eval_need(e, id, in[1].type == out[0].type, "operand and result must have one type");
    int64_t stride[3], elem = (int64_t)dtype_bytes(t->dtype);
    for (int k = 0; k < 3; k++) {
        const HloType *b = eval_type(e, in[k]);
        eval_need(e, id, b->dtype == t->dtype && (b->rank == 0 || hlo_same_dims(b, t)),
                  "bounds must be scalars or of the operand's shape");
        stride[k] = b->rank ? elem : 0;
    }
    WideFn *max = eval_ew(HLO_MAXIMUM, t->dtype), *min = eval_ew(HLO_MINIMUM, t->dtype);
    uint8_t *dst = out[0].data = eval_new(e, out[0].type);
    double w[3][2 * EVAL_CHUNK];
    for (int64_t at = 0; at < t->elems; at += EVAL_CHUNK) {
        size_t n = (size_t)(t->elems - at < EVAL_CHUNK ? t->elems - at : EVAL_CHUNK);
        for (int k = 0; k < 3; k++)
            eval_load(t->dtype, (const uint8_t *)in[k].data + at * stride[k], stride[k], n, w[k]);
        max(t->dtype, n, w[1], w[1], w[0]);
        min(t->dtype, n, w[1], w[1], w[2]);
        eval_store_computed(t->dtype, dst + at * elem, n, w[1]);
    }
}
