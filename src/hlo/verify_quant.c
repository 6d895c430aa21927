// SPDX-License-Identifier: Apache-2.0
// verify_quant.c — quantised operands: which ops take scales per axis, and how scales of operands and results agree.
#include "hlo/verify.h"

static const Quant *quant_of(Verify *v, const HloType *t, Quant *room) { // NULL: not quantised
    if (!verify_is_quantised(t) || quant_parse(v->h->arena, t, room)) // hlo_verify has checked all types
        return NULL;
    return room;
}

// Operands (a bit each) that may have one scale per index of a dimension; an op that is not here takes none.
static unsigned per_axis_operands(const HloOp *op) {
    switch (op->code) {
    case HLO_DOT:
    case HLO_DOT_GENERAL:
    case HLO_CONVOLUTION:
    case HLO_DYNAMIC_CONV:
        return 1u << 1;
    case HLO_ADD:
    case HLO_BITCAST_CONVERT:
    case HLO_BROADCAST_IN_DIM:
    case HLO_DYNAMIC_BROADCAST_IN_DIM:
    case HLO_DYNAMIC_RESHAPE:
    case HLO_RESHAPE:
    case HLO_TRANSPOSE:
    case HLO_GET_DIMENSION_SIZE:
    case HLO_UNIFORM_DEQUANTIZE:
    case HLO_UNIFORM_QUANTIZE:
    case HLO_OUTFEED:
    case HLO_SEND:
    case HLO_CUSTOM_CALL:
    case HLO_TUPLE:
    case HLO_COMPOSITE:
        return ~0u;
    default:
        return 0;
    }
}

// May operand i, or behind the operands a result, have scales for blocks? The specification has none: what takes a tensor
// whole, turns it into floats or floats into it, or multiplies by it.
static bool takes_blocks(const HloOp *op, uint32_t i) {
    switch (op->code) {
    case HLO_DOT:
    case HLO_DOT_GENERAL:
    case HLO_CONVOLUTION:
    case HLO_DYNAMIC_CONV:
        return i == 1;
    case HLO_CONSTANT:
    case HLO_GET_DIMENSION_SIZE:
    case HLO_UNIFORM_DEQUANTIZE:
    case HLO_UNIFORM_QUANTIZE:
    case HLO_BITCAST_CONVERT:
    case HLO_CUSTOM_CALL:
    case HLO_OPTIMIZATION_BARRIER:
        return true;
    default:
        return hlo_row(op)->cls == HC_META;
    }
}

static void blocks_where_taken(Verify *v) {
    for (uint32_t i = 0; i < v->op->noperands + v->op->nresults; i++) {
        bool in = i < v->op->noperands;
        const HloType *t = verify_value(v, in ? hlo_operand(v->h, v->op, i) : v->op->results + (i - v->op->noperands));
        Quant room;
        const Quant *q = quant_of(v, t, &room);
        if (q && q->blocks && !takes_blocks(v->op, i))
            verify_break(v, in ? verify_input_name(i) : NULL, "%s: scales of blocks are not allowed here", verify_type_text(v, t));
    }
}

void verify_quantised_operands(Verify *v) {
    const HloOpRow *row = hlo_row(v->op);
    if (row->dialect != HD_STABLEHLO || row->cls == HC_CTRL || v->op->code == HLO_RETURN)
        return;
    blocks_where_taken(v);
    unsigned allowed = per_axis_operands(v->op);
    for (uint32_t i = 0; i < v->op->noperands; i++) {
        const HloType *t = verify_value(v, hlo_operand(v->h, v->op, i));
        Quant room;
        const Quant *q = quant_of(v, t, &room);
        if (q && q->axis >= 0 && !(allowed >> (i < 31 ? i : 31) & 1))
            verify_break(v, verify_input_name(row->operands < 0 ? 0 : i),
                         "operand %u is %s; scales per axis are not allowed here", i, verify_type_text(v, t));
    }
}

void verify_quant_add(Verify *v) {
    const HloType *t[3] = {verify_in(v, 0), verify_in(v, 1), verify_out(v, 0)};
    Quant room[3];
    const Quant *q[3];
    for (int i = 0; i < 3; i++)
        q[i] = quant_of(v, t[i], &room[i]);
    if (!q[0] || !q[1] || !q[2])
        return; // types agree, so none is
    verify_that(v, q[0]->storage == q[1]->storage && q[0]->storage == q[2]->storage, "C3", "storage types differ");
    verify_that(v, (q[0]->axis >= 0 || q[1]->axis >= 0) == (q[2]->axis >= 0), "C5",
                "the result must have scales per axis when an operand has, and only then");
    verify_that(v, q[0]->axis < 0 || q[0]->axis == q[2]->axis, "C6", "lhs and result are quantised along different dimensions");
    verify_that(v, q[1]->axis < 0 || q[1]->axis == q[2]->axis, "C7", "rhs and result are quantised along different dimensions");
}

// --- data movement -----------------------------------------------------------------------------------

static void broadcast_axis(Verify *v, const Quant *a, const Quant *r) {
    const HloType *in = verify_in(v, 0);
    uint32_t n;
    const int64_t *to = verify_ints(v, AK_BROADCAST_DIMENSIONS, &n);
    verify_that(v, to[a->axis] == r->axis, "C6", "the result is quantised along another dimension than the operand");
    if (in->dims[a->axis] != 1)
        return;
    for (uint32_t i = 0; i < r->n; i++)
        verify_that(v, r->scales[i] == a->scales[0] && r->zero_points[i] == a->zero_points[0], "C6",
                    "a repeated dimension must repeat the operand's scale and zero point");
}

static int64_t product(const HloType *t, int first, int last) { // -1: not known
    int64_t p = 1;
    for (int i = first; i < last; i++)
        if (t->dims[i] == HLO_DYNAMIC || __builtin_mul_overflow(p, t->dims[i], &p))
            return -1;
    return p;
}

static void reshape_axis(Verify *v, const Quant *a, const Quant *r) {
    const HloType *in = verify_in(v, 0), *out = verify_out(v, 0);
    verify_that(v, verify_dim_same(in->dims[a->axis], out->dims[r->axis]), "C3",
                "the quantised dimension must keep its size");
    int64_t x = product(in, 0, a->axis), y = product(out, 0, r->axis);
    verify_that(v, x < 0 || y < 0 || x == y, "C3", "the quantised dimension moves among the elements");
}

void verify_quant_moved(Verify *v) {
    Quant rooms[2];
    const HloType *in = verify_in(v, 0), *out = verify_out(v, 0);
    const Quant *a = quant_of(v, in, &rooms[0]), *r = quant_of(v, out, &rooms[1]);
    if (!a || !r)
        return; // the element types agree, so neither is
    bool broadcast = v->op->code == HLO_BROADCAST_IN_DIM || v->op->code == HLO_DYNAMIC_BROADCAST_IN_DIM;
    verify_that(v, (a->axis < 0) == (r->axis < 0), "C1", "one side has scales per axis, the other has not");
    bool may_differ = broadcast && a->axis >= 0; // it repeats scales along the dimension it repeats
    verify_that(v, may_differ || quant_same(a, r), "C1", "operand and result differ in scales or zero points");
    if (a->axis < 0)
        return;
    if (broadcast) {
        broadcast_axis(v, a, r);
    } else if (v->op->code == HLO_TRANSPOSE) {
        uint32_t n;
        const int64_t *p = verify_ints(v, AK_PERMUTATION, &n);
        verify_that(v, p[r->axis] == a->axis, "C4", "the quantised dimension of the result is not the operand's");
    } else {
        reshape_axis(v, a, r);
    }
}

// --- products ----------------------------------------------------------------------------------------

// rules: which sides; zero points of rhs; axis of rhs; axis of result; storage; expressed; per tensor; floats.
void verify_quant_product(Verify *v, const char *const rules[8], int rhs_axis, int out_axis) {
    const HloType *t[3] = {verify_in(v, 0), verify_in(v, 1), verify_out(v, 0)};
    Quant room[3];
    const Quant *a = quant_of(v, t[0], &room[0]), *b = quant_of(v, t[1], &room[1]), *r = quant_of(v, t[2], &room[2]);
    if (!a && !b && !r)
        return;
    verify_that(v, b && !a == !r, rules[0], "rhs must be quantised, and lhs and result both or neither");
    for (uint32_t i = 0; rules[1] && i < b->n; i++)
        verify_that(v, b->zero_points[i] == 0, rules[1], "zero points of rhs must be 0");
    verify_that(v, rhs_axis < 0 || b->axis < 0 || b->axis == rhs_axis, rules[2],
                "rhs may only have scales along its output features");
    verify_that(v, !r || out_axis < 0 || r->axis < 0 || r->axis == out_axis, rules[3],
                "the result may only have scales along its features");
    if (!a) {
        verify_that(v, verify_elem(t[0]) == b->expressed && verify_elem(t[2]) == b->expressed, rules[7],
                    "lhs and result must hold the type that rhs expresses");
        return;
    }
    verify_that(v, a->storage == b->storage, rules[4], "the storage types of lhs and rhs differ");
    verify_that(v, a->expressed == b->expressed && a->expressed == r->expressed, rules[5], "the expressed types differ");
    verify_that(v, b->axis >= 0 || r->axis < 0, rules[6], "the result has scales per axis, but rhs has not");
}
