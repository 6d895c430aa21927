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

#include "pass/rows.h"
#include "pass/walk.h"

#define PLACES_MIN 65536             // elements, and rows: below, the kernel costs less
#define ROWS_MIN 96
#define EXACT_MAX ((int64_t)1 << 24) // what fp32 counts to

typedef struct Places {
    Hlo *h;
    Walk w;
    LocId loc;
} Places;

// --- reading -----------------------------------------------------------------------------------------

static const HloOp *def_of(const Hlo *h, ValueId v, HloOpcode code) {
    OpId def = h->values.at[v].def;
    return def && hlo_at(h, def)->code == code ? hlo_at(h, def) : NULL;
}

static bool is_compare(const Hlo *h, ValueId v, int64_t direction, ValueId a, ValueId b) {
    const HloOp *op = def_of(h, v, HLO_COMPARE);
    return op && hlo_int(op, AK_COMPARISON_DIRECTION, -1) == direction && hlo_operand(h, op, 0) == a && hlo_operand(h, op, 1) == b &&
           hlo_int(op, AK_COMPARE_TYPE, CMPT_FLOAT) != CMPT_TOTALORDER;
}

// The region takes the first of two pairs when its value compares so, or is NaN; of equal ones the lower place.
static bool picks(const Hlo *h, const HloRegion *r, int64_t direction) {
    const HloOp *ret = hlo_at(h, r->ops.at[r->ops.n - 1]);
    ValueId x = r->args, i = r->args + 1, y = r->args + 2, j = r->args + 3;
    const HloOp *value = def_of(h, hlo_operand(h, ret, 0), HLO_SELECT), *place = def_of(h, hlo_operand(h, ret, 1), HLO_SELECT);
    if (!value || !place || hlo_operand(h, value, 1) != x || hlo_operand(h, value, 2) != y || hlo_operand(h, place, 1) != i ||
        hlo_operand(h, place, 2) != j)
        return false;
    ValueId better = hlo_operand(h, value, 0);
    const HloOp *either = def_of(h, better, HLO_OR), *first = def_of(h, hlo_operand(h, place, 0), HLO_OR);
    const HloOp *ties = first && hlo_operand(h, first, 0) == better ? def_of(h, hlo_operand(h, first, 1), HLO_AND) : NULL;
    return either && ties && is_compare(h, hlo_operand(h, either, 0), direction, x, y) &&
           is_compare(h, hlo_operand(h, either, 1), CMP_NE, x, x) && is_compare(h, hlo_operand(h, ties, 0), CMP_EQ, x, y) &&
           is_compare(h, hlo_operand(h, ties, 1), CMP_LT, i, j);
}

static bool is_plain(const HloType *t) { return t->kind == HT_TENSOR && !t->dynamic && !t->text && t->elems > 0; }

// The reduced dimension, which is the last with more than one element; -1: not such a reduction.
static int row_dim(const Hlo *h, const HloOp *op, int64_t *direction) {
    if (op->code != HLO_REDUCE || op->noperands != 4 || op->nresults != 2)
        return -1;
    const HloType *x = hlo_value_type(h, hlo_operand(h, op, 0)), *out = hlo_value_type(h, op->results + 1);
    const HloOp *count = def_of(h, hlo_operand(h, op, 1), HLO_IOTA);
    const HloAttr *worst = splat_value(h, hlo_operand(h, op, 2)), *zero = splat_value(h, hlo_operand(h, op, 3));
    uint32_t n;
    const int64_t *dims = hlo_ints(op, AK_DIMENSIONS, &n);
    if (n != 1 || !count || !worst || !zero || !is_plain(x) || !is_plain(out) || x->elems < PLACES_MIN ||
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

static ValueId call(Places *p, HloOpcode code, uint32_t n, const ValueId *in, TypeId type) {
    return walk_push(&p->w, hlo_op(p->h, code, p->loc, n, in, 1, &type));
}

static ValueId number(Places *p, TypeId type, double v) {
    uint8_t data[16] = {0};
    dtype_from_f64(hlo_type(p->h, type)->dtype, data, v);
    return walk_push(&p->w, hlo_op_splat(p->h, p->loc, type, data));
}

static ValueId extreme(Places *p, HloOpcode code, ValueId x, ValueId init, int64_t dim, TypeId type) {
    Hlo *h = p->h;
    TypeId scalar = hlo_type_tensor(h, hlo_value_type(h, x)->dtype, 0, NULL);
    OpId made = hlo_op(h, HLO_REDUCE, p->loc, 2, (ValueId[]){x, init}, 1, &type);
    hlo_set_ints(h, made, AK_DIMENSIONS, &dim, 1);
    hlo_op_add_combiner(h, made, code, scalar);
    return walk_push(&p->w, made);
}

static ValueId compare(Places *p, int64_t direction, ValueId x, ValueId y, TypeId flags) {
    OpId id = hlo_op(p->h, HLO_COMPARE, p->loc, 2, (ValueId[]){x, y}, 1, &flags);
    *hlo_attr_slot(p->h, id, AK_COMPARISON_DIRECTION) = (HloAttr){.kind = HA_ENUM, .i = direction};
    *hlo_attr_slot(p->h, id, AK_COMPARE_TYPE) = (HloAttr){.kind = HA_ENUM, .i = CMPT_FLOAT};
    return walk_push(&p->w, id);
}

static ValueId spread(Places *p, ValueId v, const int64_t *dims, uint32_t n, TypeId type) {
    OpId id = hlo_op(p->h, HLO_BROADCAST_IN_DIM, p->loc, 1, &v, 1, &type);
    hlo_set_ints(p->h, id, AK_BROADCAST_DIMENSIONS, dims, n);
    return walk_push(&p->w, id);
}

static void write(Places *p, const HloOp *op, int dim, int64_t direction) {
    Hlo *h = p->h;
    ValueId x = hlo_operand(h, op, 0);
    const HloType t = *hlo_value_type(h, x), out = *hlo_value_type(h, op->results);
    TypeId flags = hlo_type_tensor(h, DT_I1, t.rank, t.dims), wide = hlo_type_tensor(h, DT_F32, t.rank, t.dims);
    TypeId line = hlo_type_tensor(h, DT_F32, 1, &t.dims[dim]), rows = hlo_type_tensor(h, DT_F32, out.rank, out.dims);
    int64_t kept[OTRN_MAX_RANK], along = dim;
    uint32_t n = 0;
    for (int i = 0; i < t.rank; i++)
        if (i != dim)
            kept[n++] = i;
    ValueId m = extreme(p, direction == CMP_GT ? HLO_MAXIMUM : HLO_MINIMUM, x, hlo_operand(h, op, 2), dim, h->values.at[op->results].type);
    ValueId all = spread(p, m, kept, n, h->values.at[x].type);
    ValueId hit = call(p, HLO_OR, 2, (ValueId[]){compare(p, CMP_EQ, x, all, flags), compare(p, CMP_NE, x, x, flags)}, flags);
    OpId iota = hlo_op(h, HLO_IOTA, p->loc, 0, NULL, 1, &line);
    *hlo_attr_slot(h, iota, AK_IOTA_DIMENSION) = (HloAttr){.kind = HA_INT, .i = 0};
    ValueId place = spread(p, walk_push(&p->w, iota), &along, 1, wide);
    ValueId far = call(p, HLO_SELECT, 3, (ValueId[]){hit, place, number(p, wide, (double)t.dims[dim])}, wide);
    ValueId least = extreme(p, HLO_MINIMUM, far, number(p, hlo_type_tensor(h, DT_F32, 0, NULL), (double)INFINITY), dim, rows);
    walk_replace(&p->w, op->results, m);
    walk_replace(&p->w, op->results + 1, call(p, HLO_CONVERT, 1, &least, h->values.at[op->results + 1].type));
}

static void visit(void *pass, OpId id) {
    Places *p = pass;
    HloOp op = *hlo_at(p->h, id);
    int64_t direction;
    int dim = row_dim(p->h, &op, &direction);
    p->loc = op.loc;
    if (dim >= 0)
        write(p, &op, dim, direction);
    else
        walk_push(&p->w, id);
}

void pass_places(Compile *c) {
    Places p = {.h = c->hlo};
    walk_init(&p.w, c);
    walk_rewrite(&p.w, hlo_main(c->hlo)->body, WALK_CONTROL, visit, &p);
}
