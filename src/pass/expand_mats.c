// SPDX-License-Identifier: Apache-2.0
// expand_mats.c — what the decompositions share; expand_mats.h tells the idea.
#include "pass/expand_mats.h"

#include <string.h>

MatsCall mats_call(const HloOp *op) {
    static const struct {
        const char *target;
        uint32_t operands, results;
        MatsCall call;
    } rows[] = {
        {"Qr", 1, 2, MATS_QR},
        {"ProductOfElementaryHouseholderReflectors", 2, 1, MATS_PRODUCT},
        {"LuDecomposition", 1, 3, MATS_LU},
        {"Eigh", 1, 2, MATS_EIGH},
    };
    for (size_t i = 0; op->code == HLO_CUSTOM_CALL && i < sizeof rows / sizeof *rows; i++)
        if (op->noperands == rows[i].operands && op->nresults == rows[i].results && !strcmp(hlo_attr_str(op, AK_CALL_TARGET_NAME), rows[i].target))
            return rows[i].call;
    return MATS_NONE;
}

bool expand_is_matrices(const HloOp *op) { return mats_call(op) != MATS_NONE; }

void mats_fail(Mats *q, const HloOp *op) {
    hlo_fail(q->w->hlo, q->w->id, OTRN_VERIFY, "@%s of shapes that do not fit each other", hlo_attr_str(op, AK_CALL_TARGET_NAME));
}

Mats mats_of(const Mats *q, int64_t m, int64_t n) {
    Hlo *h = q->w->hlo;
    Mats r = *q;
    r.m = m, r.n = n;
    r.all = hlo_type_tensor(h, q->dtype, 3, (int64_t[]){q->b, m, n});
    r.rows = hlo_type_tensor(h, q->dtype, 2, (int64_t[]){q->b, m});
    r.cols = hlo_type_tensor(h, q->dtype, 2, (int64_t[]){q->b, n});
    r.one = hlo_type_tensor(h, q->dtype, 1, &q->b);
    return r;
}

HloOp mats_call_as(Walk *w, const HloOp *op, const char *target, const char *config, uint32_t n, const ValueId *in, uint32_t nresults, const TypeId *types) {
    Hlo *h = w->hlo;
    OpId id = hlo_op(h, HLO_CUSTOM_CALL, op->loc, n, in, nresults, types);
    *hlo_attr_slot(h, id, AK_CALL_TARGET_NAME) = (HloAttr){.kind = HA_STR, .n = (uint32_t)strlen(target), .s = target};
    *hlo_attr_slot(h, id, AK_BACKEND_CONFIG) = (HloAttr){.kind = HA_STR, .n = (uint32_t)strlen(config), .s = config};
    walk_grow(w);
    return *hlo_at(h, id);
}

void mats_read(Mats *q, const HloOp *op) {
    Hlo *h = q->w->hlo;
    HloType a = *hlo_value_type(h, hlo_operand(h, op, 0));
    if (a.rank < 2 || !hlo_is_plain(&a) || (!dtype_is_float(a.dtype) && !dtype_is_complex(a.dtype)))
        mats_fail(q, op);
    q->b = 1;
    for (int d = 0; d < a.rank - 2; d++)
        q->b *= a.dims[d];
    q->dtype = a.dtype, q->real = a.dtype == DT_C64 ? DT_F32 : a.dtype == DT_C128 ? DT_F64 : a.dtype;
    *q = mats_of(q, a.dims[a.rank - 2], a.dims[a.rank - 1]);
}

TypeId mats_typed(Mats *q, TypeId shape, int dtype) { return hlo_type_as(q->w->hlo, shape, dtype); }

TypeId mats_type_of(const Mats *q, ValueId v) { return q->w->hlo->values.at[v].type; }

ValueId mats_number(Mats *q, TypeId shape, int dtype, double v) {
    if (!dtype_is_complex(dtype))
        return walk_number(q->w, mats_typed(q, shape, dtype), v);
    return walk_convert(q->w, walk_number(q->w, mats_typed(q, shape, q->real), v), dtype);
}

ValueId mats_wide(Mats *q, ValueId v, const int64_t *dims, TypeId shape) {
    const HloType *t = hlo_value_type(q->w->hlo, v);
    return walk_broadcast(q->w, v, dims, t->rank, mats_typed(q, shape, t->dtype));
}

ValueId mats_where(Mats *q, ValueId p, ValueId v, double otherwise) {
    return walk_select(q->w, p, v, mats_number(q, mats_type_of(q, v), hlo_value_type(q->w->hlo, v)->dtype, otherwise));
}

ValueId mats_total(Mats *q, HloOpcode code, ValueId v, int64_t over, TypeId shape) {
    int dtype = hlo_value_type(q->w->hlo, v)->dtype;
    return walk_reduce(q->w, code, v, mats_number(q, hlo_type_tensor(q->w->hlo, dtype, 0, NULL), dtype, 0), &over, 1, mats_typed(q, shape, dtype));
}

ValueId mats_places(Mats *q, TypeId shape, int64_t dim) { return walk_iota(q->w, mats_typed(q, shape, DT_I32), dim); }

ValueId mats_along(Mats *q, int64_t direction, TypeId shape, int64_t dim, ValueId step) {
    ValueId places = mats_places(q, shape, dim);
    return walk_compare(q->w, direction, CMPT_NOTYPE, places, walk_broadcast(q->w, step, NULL, 0, mats_type_of(q, places)));
}

ValueId mats_conjugate(Mats *q, ValueId v) {
    if (!dtype_is_complex(q->dtype))
        return v;
    TypeId part = mats_typed(q, mats_type_of(q, v), q->real);
    ValueId re = walk_op(q->w, HLO_REAL, 1, &v, part), im = walk_op(q->w, HLO_IMAG, 1, &v, part);
    return walk_op(q->w, HLO_COMPLEX, 2, (ValueId[]){re, walk_unary(q->w, HLO_NEGATE, im)}, mats_type_of(q, v));
}

ValueId mats_real(Mats *q, ValueId v) {
    return dtype_is_complex(q->dtype) ? walk_op(q->w, HLO_REAL, 1, &v, mats_typed(q, mats_type_of(q, v), q->real)) : v;
}

ValueId mats_size(Mats *q, ValueId v) { return walk_op(q->w, HLO_ABS, 1, &v, mats_typed(q, mats_type_of(q, v), q->real)); }

ValueId mats_element(Mats *q, ValueId real) { return walk_convert(q->w, real, q->dtype); }

ValueId mats_product(Mats *q, ValueId x, ValueId y) {
    static const int64_t batch = 0, inner = 2, outer = 1;
    return walk_push(q->w, hlo_op_dot(q->w->hlo, q->w->loc, x, y, (DotPairs){1, 1, &batch, &batch, &inner, &outer}, q->all, NULL));
}

ValueId mats_column(Mats *q, ValueId a, ValueId step) {
    return mats_total(q, HLO_ADD, mats_where(q, mats_along(q, CMP_EQ, q->all, 2, step), a, 0), 2, q->rows);
}

static ValueId on_diagonal(Mats *q) { return mats_compared(q, CMP_EQ, mats_places(q, q->all, 1), mats_places(q, q->all, 2)); }

ValueId mats_identity(Mats *q) {
    ValueId same = on_diagonal(q);
    return mats_where(q, same, mats_number(q, q->all, q->dtype, 1), 0);
}

ValueId mats_diagonal(Mats *q, ValueId a, int64_t over) {
    ValueId same = on_diagonal(q);
    return mats_total(q, HLO_ADD, mats_where(q, same, a, 0), over, over == 1 ? q->cols : q->rows);
}

ValueId mats_scaled(Mats *q, ValueId a, ValueId *scale, ValueId *finite) {
    Walk *w = q->w;
    ValueId largest = mats_total(q, HLO_MAXIMUM, mats_total(q, HLO_MAXIMUM, mats_size(q, a), 2, q->rows), 1, q->one);
    *finite = walk_op(w, HLO_IS_FINITE, 1, &largest, mats_typed(q, q->one, DT_I1));
    ValueId zero = walk_number(w, mats_type_of(q, largest), 0), some = mats_compared(q, CMP_GT, largest, zero);
    *scale = mats_where(q, walk_binary(w, HLO_AND, *finite, some), largest, 1);
    a = walk_binary(w, HLO_DIVIDE, a, mats_wide(q, mats_element(q, *scale), mats_at, q->all));
    return mats_where(q, mats_wide(q, *finite, mats_at, q->all), a, 0);
}

ValueId mats_steps(Mats *q, bool back, MatsMore *more, MatsStep *body, uint32_t n, const ValueId *init) {
    Hlo *h = q->w->hlo;
    TypeId counter = hlo_type_tensor(h, DT_I32, 0, NULL), types[1 + MATS_CARRIED] = {counter};
    ValueId in[1 + MATS_CARRIED] = {walk_number(q->w, counter, 0)}, out[1 + MATS_CARRIED], carried[MATS_CARRIED];
    assert(n <= MATS_CARRIED);
    for (uint32_t i = 0; i < n; i++)
        in[1 + i] = init[i], types[1 + i] = mats_type_of(q, init[i]);
    OpId loop = hlo_op(h, HLO_WHILE, q->w->loc, n + 1, in, n + 1, types);
    RegionId cond = hlo_op_add_region(h, loop, n + 1, types), inner = hlo_op_add_region(h, loop, n + 1, types);
    walk_grow(q->w);
    OpList outer = walk_region_begin(q->w);
    ValueId last = walk_number(q->w, counter, (double)q->k);
    ValueId args = h->regions.at[cond].args, go = walk_compare(q->w, CMP_LT, CMPT_NOTYPE, args, last);
    for (uint32_t i = 0; i < n; i++)
        carried[i] = args + 1 + i;
    if (more)
        go = walk_binary(q->w, HLO_AND, go, more(q, carried));
    walk_region_end(q->w, cond, outer, &go, 1);
    outer = walk_region_begin(q->w);
    args = h->regions.at[inner].args;
    ValueId step = args;
    for (uint32_t i = 0; i < n; i++)
        carried[i] = args + 1 + i;
    if (back)
        step = walk_binary(q->w, HLO_SUBTRACT, walk_number(q->w, counter, (double)(q->k - 1)), args);
    body(q, step, carried, out + 1);
    out[0] = walk_binary(q->w, HLO_ADD, args, walk_number(q->w, counter, 1));
    walk_region_end(q->w, inner, outer, out, n + 1);
    return walk_push(q->w, loop) + 1;
}
