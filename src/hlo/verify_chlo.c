// SPDX-License-Identifier: Apache-2.0
// verify_chlo.c — chlo ops that are more than elementwise. chlo has no numbered constraints: messages end without one.
#include "hlo/infer.h"
#include "hlo/query.h"
#include "hlo/verify.h"

// --- implicit broadcasts ---------------------------------------------------------------------------

// Types of one family: floats, or quantised with one storage type and one expressed type.
static void alike(Verify *v, const HloType *a, const HloType *b) {
    verify_same_elem(v, NULL, a, b);
    if (verify_is_quantised(a) && a->dtype != b->dtype)
        verify_break(v, NULL, "%s and %s are stored in different types", verify_type_text(v, a), verify_type_text(v, b));
}

static void broadcast_elems(Verify *v) {
    const HloType *a = verify_in(v, 0), *b = verify_in(v, 1), *r = verify_out(v, 0);
    switch (v->op->code) {
    case HLO_CHLO_BROADCAST_COMPARE:
        verify_same_elem(v, NULL, a, b);
        verify_that(v, r->dtype == DT_I1, NULL, "the result must hold i1");
        verify_compare_type(v, NULL);
        return;
    case HLO_CHLO_BROADCAST_COMPLEX:
        verify_same_elem(v, NULL, a, b);
        verify_that(v, (a->dtype == DT_F32 || a->dtype == DT_F64) && !verify_is_quantised(a), NULL,
                    "parts of complex numbers are f32 or f64");
        verify_that(v, dtype_is_complex(r->dtype) && verify_complex_part(r->dtype) == a->dtype, NULL,
                    "the result must hold complex numbers of the operands' element type");
        return;
    case HLO_CHLO_BROADCAST_SELECT:
        verify_that(v, a->dtype == DT_I1 && !verify_is_quantised(a), NULL, "the predicate must hold i1");
        alike(v, b, verify_in(v, 2));
        alike(v, b, r);
        return;
    default:
        verify_elem_allowed(v, hlo_broadcast_base(v->op->code));
        alike(v, a, b);
        alike(v, a, r);
    }
}

// Shapes are aligned at their ends, unless broadcast_dimensions says where the smaller one's go.
static void check_broadcasting(Verify *v) {
    const HloType *r = verify_out(v, 0);
    uint32_t n;
    const int64_t *map = verify_ints(v, AK_BROADCAST_DIMENSIONS, &n);
    int lowest = r->rank, highest = 0;
    for (uint32_t i = 0; i < v->op->noperands; i++) {
        int rank = verify_in(v, i)->rank;
        lowest = rank < lowest ? rank : lowest, highest = rank > highest ? rank : highest;
    }
    verify_that(v, r->rank == highest, NULL, "the result must have the rank of the larger operand");
    bool placed = n && lowest < highest;
    verify_that(v, !placed || n == (uint32_t)lowest, NULL, "broadcast_dimensions must name a dimension for each of the smaller operand");
    for (uint32_t i = 0; placed && i < n; i++)
        verify_that(v, map[i] >= 0 && map[i] < highest && (!i || map[i] > map[i - 1]), NULL,
                    "broadcast_dimensions must ascend and be dimensions of the result");
    for (uint32_t i = 0; i < v->op->noperands; i++) {
        const HloType *t = verify_in(v, i);
        for (int d = 0; d < t->rank; d++) {
            int64_t to = placed && t->rank == lowest ? map[d] : r->rank - t->rank + d;
            if (t->dims[d] != 1 && !verify_dim_same(t->dims[d], r->dims[to]))
                verify_break(v, NULL, "dimension %d of operand %s cannot be broadcast to %s", d, verify_type_text(v, t),
                             verify_type_text(v, r));
        }
    }
    broadcast_elems(v);
}

static void check_constant_like(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    const HloAttr *value = hlo_attr(v->op, AK_LIKE_VALUE);
    bool complex = dtype_is_complex(r->dtype);
    int dtype = value->type ? hlo_type(v->h, value->type)->dtype : value->kind == HA_INT ? DT_I64 : DT_F64;
    bool fits = value->kind == HA_OPAQUE ? complex && !strncmp(value->s, "#complex.number<", 16)
                : value->kind == HA_BOOL ? r->dtype == DT_I1
                                         : (value->kind == HA_INT || value->kind == HA_FLOAT) && dtype == r->dtype;
    verify_that(v, fits && !verify_is_quantised(r), NULL, "the value is not of the result's element type");
    verify_same_shape(v, NULL, a, r);
}

// --- ragged_dot ------------------------------------------------------------------------------------

typedef struct Side {
    const HloType *t;
    const int64_t *batch, *contract;
    uint32_t nb, nc;
} Side;

static Side ragged_side(Verify *v, uint32_t i) {
    Side s = {.t = verify_in(v, i)};
    HloAttrKey keys[2] = {i ? AK_RHS_BATCHING_DIMENSIONS : AK_LHS_BATCHING_DIMENSIONS,
                          i ? AK_RHS_CONTRACTING_DIMENSIONS : AK_LHS_CONTRACTING_DIMENSIONS};
    s.batch = verify_ints(v, keys[0], &s.nb);
    s.contract = verify_ints(v, keys[1], &s.nc);
    for (int k = 0; k < 2; k++) {
        verify_dims_in(v, NULL, keys[k], s.t->rank);
        verify_unique(v, NULL, keys[k]);
    }
    for (uint32_t k = 0; k < s.nb; k++)
        verify_that(v, !hlo_among(s.contract, s.nc, s.batch[k]), NULL, "a dimension is both batching and contracting");
    return s;
}

static void ragged_pairs(Verify *v, const Side *l, const Side *r) {
    verify_that(v, l->nb == r->nb && l->nc == r->nc, NULL, "both sides must name as many batching and contracting dimensions");
    for (uint32_t i = 0; i < l->nb; i++)
        verify_that(v, verify_dim_same(l->t->dims[l->batch[i]], r->t->dims[r->batch[i]]), NULL, "batching dimensions differ in size");
    for (uint32_t i = 0; i < l->nc; i++)
        verify_that(v, verify_dim_same(l->t->dims[l->contract[i]], r->t->dims[r->contract[i]]), NULL,
                    "contracting dimensions differ in size");
}

// Group sizes are one list, or one for each place along the dimensions before the ragged one.
static void ragged_sizes(Verify *v, const Side *l) {
    const HloType *g = verify_in(v, 2);
    int64_t prefix[OTRN_MAX_RANK];
    uint32_t n = infer_ragged_prefix(v->op, l->t->rank, prefix);
    verify_that(v, verify_is_index(g), NULL, "group sizes must be integers");
    verify_that(v, g->rank == 1 || (uint32_t)g->rank == n + 1, NULL,
                "group sizes must be one list, or have the dimensions before the ragged one");
    for (uint32_t i = 0; g->rank > 1 && i < n; i++)
        verify_that(v, verify_dim_same(g->dims[i], l->t->dims[prefix[i]]), NULL,
                    "a dimension of the group sizes differs from the left side's");
}

static void ragged_result(Verify *v, const Side *l, const Side *r, bool grouped, int64_t groups, int64_t group_dim) {
    const HloType *out = verify_out(v, 0);
    int64_t want[3 * OTRN_MAX_RANK];
    int n = 0;
    if (grouped)
        want[n++] = groups;
    for (uint32_t i = 0; i < l->nb; i++)
        want[n++] = l->t->dims[l->batch[i]];
    for (int s = 0; s < 2; s++) {
        const Side *x = s ? r : l;
        for (int d = 0; d < x->t->rank; d++)
            if (!hlo_among(x->batch, x->nb, d) && !hlo_among(x->contract, x->nc, d) && !(s && d == group_dim))
                want[n++] = x->t->dims[d];
    }
    bool fits = n == out->rank;
    for (int i = 0; fits && i < n; i++)
        fits = verify_dim_same(want[i], out->dims[i]);
    verify_that(v, fits, NULL, "the result does not have the product's shape");
    if (!dtype_is_float(l->t->dtype) || !dtype_is_float(r->t->dtype))
        verify_same_elem(v, NULL, l->t, r->t);
}

static void check_ragged_dot(Verify *v) {
    uint32_t nragged, ngroup;
    const int64_t *ragged = verify_ints(v, AK_LHS_RAGGED_DIMENSIONS, &nragged);
    const int64_t *group = verify_ints(v, AK_RHS_GROUP_DIMENSIONS, &ngroup);
    Side l = ragged_side(v, 0), r = ragged_side(v, 1);
    verify_that(v, nragged == 1, NULL, "the left side must have exactly one ragged dimension");
    verify_dims_in(v, NULL, AK_LHS_RAGGED_DIMENSIONS, l.t->rank);
    verify_dims_in(v, NULL, AK_RHS_GROUP_DIMENSIONS, r.t->rank);
    ragged_pairs(v, &l, &r);
    for (uint32_t i = 0; i < ngroup; i++)
        verify_that(v, !hlo_among(r.batch, r.nb, group[i]) && !hlo_among(r.contract, r.nc, group[i]), NULL,
                    "a group dimension is batching or contracting too");
    bool contract = hlo_among(l.contract, l.nc, ragged[0]), batch = hlo_among(l.batch, l.nb, ragged[0]);
    ragged_sizes(v, &l);
    const HloType *g = verify_in(v, 2);
    int64_t groups = g->dims[g->rank - 1];
    if (contract || batch) {
        verify_that(v, !ngroup, NULL, "the right side must have no group dimension when the ragged one is batching or contracting");
    } else {
        verify_that(v, ngroup == 1, NULL, "the right side must have exactly one group dimension");
        verify_that(v, verify_dim_same(r.t->dims[group[0]], groups), NULL, "the group dimension must have one entry for each group");
    }
    ragged_result(v, &l, &r, contract, groups, ngroup ? group[0] : -1);
}

// --- scan ------------------------------------------------------------------------------------------

// Is `slice` what is left of `whole` without dimension `axis`?
static bool is_slice(const HloType *whole, const HloType *slice, int64_t axis) {
    if (slice->kind != HT_TENSOR || slice->rank + 1 != whole->rank || !verify_elem_same(whole, slice))
        return false;
    for (int d = 0; d < slice->rank; d++)
        if (!verify_dim_same(slice->dims[d], whole->dims[d < axis ? d : d + 1]))
            return false;
    return true;
}

static void scan_size(Verify *v, const HloType *t, int64_t axis, int64_t *size) {
    verify_that(v, axis >= 0 && axis < t->rank, NULL, "the scanned dimension is none of an input's or output's");
    verify_that(v, *size == HLO_DYNAMIC || verify_dim_same(t->dims[axis], *size), NULL,
                "inputs and outputs must have one size along the scanned dimension");
    *size = t->dims[axis] == HLO_DYNAMIC ? *size : t->dims[axis];
}

static void check_scan(Verify *v) {
    const HloRegion *body = hlo_op_region(v->h, v->op, 0);
    const HloOp *ret;
    uint32_t n, returned = verify_returns(v, 0, &ret);
    const int64_t *segments = verify_ints(v, AK_OPERAND_SEGMENT_SIZES, &n);
    verify_that(v, n == 2 && segments[0] >= 0 && segments[0] <= v->op->noperands &&
                       segments[1] == v->op->noperands - segments[0] &&
                       v->op->nresults >= segments[1], NULL, "operandSegmentSizes do not fit its operands and results");
    uint32_t inputs = (uint32_t)segments[0], outputs = v->op->nresults - (uint32_t)segments[1];
    int64_t axis = hlo_int(v->op, AK_DIMENSION, -1), size = hlo_int(v->op, AK_SCAN_DIM_SIZE, HLO_DYNAMIC);
    if (body->nargs != v->op->noperands)
        verify_break(v, NULL, "its region takes %u values, there are %u operands", body->nargs, v->op->noperands);
    if (returned != v->op->nresults)
        verify_break(v, NULL, "its region returns %u values, there are %u results", returned, v->op->nresults);
    for (uint32_t i = 0; i < v->op->noperands; i++) {
        const HloType *t = verify_in(v, i), *arg = verify_value(v, body->args + i);
        if (i < inputs)
            scan_size(v, t, axis, &size);
        if (arg->kind != HT_TENSOR || !(i < inputs ? is_slice(t, arg, axis) : verify_type_same(t, arg)))
            verify_break(v, NULL, "operand %u is %s, its region takes %s", i, verify_type_text(v, t), verify_type_text(v, arg));
    }
    for (uint32_t i = 0; i < v->op->nresults; i++) {
        const HloType *t = verify_out(v, i), *made = verify_value(v, hlo_operand(v->h, ret, i));
        if (i < outputs)
            scan_size(v, t, axis, &size);
        if (made->kind != HT_TENSOR || !(i < outputs ? is_slice(t, made, axis) : verify_type_same(t, made)))
            verify_break(v, NULL, "result %u is %s, its region returns %s", i, verify_type_text(v, t), verify_type_text(v, made));
    }
    for (uint32_t i = 0; i < v->op->nresults - outputs; i++)
        verify_same_type(v, NULL, verify_in(v, inputs + i), verify_out(v, outputs + i));
}

// --- top_k -----------------------------------------------------------------------------------------

static void check_top_k(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0), *i = verify_out(v, 1);
    int64_t k = hlo_int(v->op, AK_K, -1);
    verify_same_elem(v, NULL, a, r);
    verify_same_shape(v, NULL, r, i);
    verify_that(v, a->rank >= 1 && a->rank == r->rank && k >= 0, NULL, "the operand needs a dimension");
    for (int d = 0; d < a->rank; d++)
        verify_that(v, verify_dim_same(r->dims[d], d == a->rank - 1 ? k : a->dims[d]), NULL,
                    "the result's last dimension must be k, all others the operand's");
    verify_that(v, a->dims[a->rank - 1] == HLO_DYNAMIC || k <= a->dims[a->rank - 1], NULL, "k is larger than the last dimension");
}

bool verify_chlo(Verify *v) {
    if (hlo_row(v->op)->dialect != HD_CHLO)
        return false;
    switch (v->op->code) {
    case HLO_CHLO_CONSTANT_LIKE: check_constant_like(v); return true;
    case HLO_CHLO_RAGGED_DOT: check_ragged_dot(v); return true;
    case HLO_CHLO_SCAN: check_scan(v); return true;
    case HLO_CHLO_TOP_K: check_top_k(v); return true;
    default: check_broadcasting(v); return true; // verify_ew has taken the elementwise ones
    }
}
