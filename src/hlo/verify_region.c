// SPDX-License-Identifier: Apache-2.0
// verify_region.c — ops with a computation inside: control flow, reductions, windows, sort.
#include "hlo/verify.h"

// --- control flow ----------------------------------------------------------------------------------

static bool value_types_same(Verify *v, ValueId a, ValueId b) {
    const HloType *x = verify_value(v, a), *y = verify_value(v, b);
    if (x->kind != HT_TENSOR || y->kind != HT_TENSOR)
        return x == y;
    return verify_type_same(x, y);
}

static void check_while(Verify *v) {
    const HloOp *op = v->op, *ret;
    if (op->nresults != op->noperands)
        verify_break(v, "C3", "%u results for %u operands", op->nresults, op->noperands);
    for (int k = 0; k < 2; k++) {
        const HloRegion *r = hlo_op_region(v->h, op, (uint32_t)k);
        if (r->nargs != op->noperands)
            verify_break(v, k ? "C2" : "C1", "the %s takes %u values for %u operands", k ? "body" : "condition", r->nargs,
                         op->noperands);
        for (uint32_t i = 0; i < r->nargs; i++)
            if (!value_types_same(v, r->args + i, hlo_operand(v->h, op, i)))
                verify_break(v, k ? "C2" : "C1", "argument %u of the %s is not of the operand's type", i,
                             k ? "body" : "condition");
    }
    if (verify_returns(v, 0, &ret) != 1)
        verify_break(v, "C1", "the condition must return one value");
    verify_is_scalar(v, "C1", verify_value(v, hlo_operand(v->h, ret, 0)), DT_I1, "the condition's value");
    if (verify_returns(v, 1, &ret) != op->noperands)
        verify_break(v, "C2", "the body returns %u values for %u operands", ret->noperands, op->noperands);
    for (uint32_t i = 0; i < op->noperands; i++) {
        if (!value_types_same(v, hlo_operand(v->h, ret, i), hlo_operand(v->h, op, i)))
            verify_break(v, "C2", "value %u of the body is %s, but the operand is %s", i,
                         verify_type_text(v, verify_value(v, hlo_operand(v->h, ret, i))),
                         verify_type_text(v, verify_value(v, hlo_operand(v->h, op, i))));
        if (!value_types_same(v, op->results + i, hlo_operand(v->h, op, i)))
            verify_break(v, "C3", "result %u is not of the operand's type", i);
    }
}

static void check_branches(Verify *v) {
    const HloOp *op = v->op, *ret;
    bool is_if = op->code == HLO_IF;
    verify_is_scalar(v, "I1", verify_value(v, hlo_operand(v->h, op, 0)), is_if ? DT_I1 : DT_I32,
                     is_if ? "the predicate" : "the index");
    verify_that(v, op->nregions > 0, "C1", "there must be a branch");
    for (uint32_t k = 0; k < op->nregions; k++) {
        if (hlo_op_region(v->h, op, k)->nargs)
            verify_break(v, is_if ? "C1" : "C2", "branch %u must not take arguments", k);
        if (verify_returns(v, k, &ret) != op->nresults)
            verify_break(v, is_if ? "C3" : "C4", "branch %u returns %u values for %u results", k, ret->noperands,
                         op->nresults);
        for (uint32_t i = 0; i < op->nresults; i++)
            if (!value_types_same(v, hlo_operand(v->h, ret, i), op->results + i))
                verify_break(v, is_if ? (k ? "C2" : "C3") : (k ? "C3" : "C4"), "value %u of branch %u is %s, but the result is %s",
                             i, k, verify_type_text(v, verify_value(v, hlo_operand(v->h, ret, i))),
                             verify_type_text(v, verify_value(v, op->results + i)));
    }
}

// --- reductions ------------------------------------------------------------------------------------

// N inputs then N initial values, all inputs of one shape; types gets inputs, then room for N more.
// An initial value of a shape that is no scalar is let pass by upstream's checks, but has no meaning here.
static const HloType **inputs_and_inits(Verify *v, uint32_t *n, const char *count, const char *shape, const char *elem) {
    *n = v->op->noperands / 2;
    if (!*n || v->op->noperands % 2 || v->op->nresults != *n)
        verify_break(v, count, "%u operands and %u results are not N inputs, N initial values, N results", v->op->noperands,
                     v->op->nresults);
    const HloType **types = ARENA_NEWN(v->h->arena, const HloType *, 2 * (size_t)*n);
    for (uint32_t i = 0; i < *n; i++) {
        types[i] = verify_in(v, i);
        const HloType *init = verify_in(v, *n + i);
        verify_same_shape(v, shape, types[0], types[i]);
        if (init->rank)
            verify_break(v, "I2", "initial value %u must be a scalar, but is %s", i, verify_type_text(v, init));
        if (!verify_promotable(types[i], init) && !verify_promotable(init, types[i]))
            verify_break(v, elem, "input %u is %s, but its initial value %s", i, verify_type_text(v, types[i]),
                         verify_type_text(v, init));
    }
    return types;
}

static void check_reduce(Verify *v) {
    uint32_t n, ndims;
    const HloType **types = inputs_and_inits(v, &n, "C3", "C1", "C2"), *a = types[0];
    const int64_t *d = verify_ints(v, AK_DIMENSIONS, &ndims);
    verify_dims_in(v, "C4", AK_DIMENSIONS, a->rank);
    verify_unique(v, "C5", AK_DIMENSIONS);
    verify_combiner(v, "C6", 0, n, types, types + n);
    bool reduced[OTRN_MAX_RANK] = {0};
    for (uint32_t i = 0; i < ndims; i++)
        reduced[d[i]] = true;
    for (uint32_t k = 0; k < n; k++) {
        const HloType *r = verify_out(v, k);
        int at = 0;
        bool same = r->rank == a->rank - (int)ndims;
        for (int i = 0; same && i < a->rank; i++)
            if (!reduced[i])
                same = verify_dim_same(r->dims[at++], a->dims[i]);
        if (!same)
            verify_break(v, "C7", "result %u is %s, which is not %s without the reduced dimensions", k, verify_type_text(v, r),
                         verify_type_text(v, a));
        verify_same_elem(v, "C8", r, types[n + k]);
    }
}

static void check_reduce_window(Verify *v) {
    static const WindowList lists[] = {{AK_WINDOW_DIMENSIONS, "C4", "C5"},
                                       {AK_WINDOW_STRIDES, "C6", "C7"},
                                       {AK_BASE_DILATIONS, "C8", "C9"},
                                       {AK_WINDOW_DILATIONS, "C10", "C11"}};
    uint32_t n, m;
    const HloType **types = inputs_and_inits(v, &n, "C1", "C2", "C3"), *a = types[0];
    verify_window_lists(v, a->rank, lists, 4);
    verify_window_padding(v, "C12", a->rank);
    const int64_t *window = verify_ints(v, AK_WINDOW_DIMENSIONS, &m);
    const int64_t *stride = verify_ints(v, AK_WINDOW_STRIDES, &m);
    const int64_t *base = verify_ints(v, AK_BASE_DILATIONS, &m);
    const int64_t *dilation = verify_ints(v, AK_WINDOW_DILATIONS, &m);
    const int64_t *pad = verify_ints(v, AK_PADDING, &m);
    verify_combiner(v, "C13", 0, n, types, types + n);
    for (uint32_t k = 0; k < n; k++) {
        const HloType *r = verify_out(v, k);
        verify_that(v, r->rank == a->rank, k ? "C14" : "C15", "results must have the inputs' rank");
        for (int i = 0; i < a->rank; i++) {
            int64_t want = verify_window_steps(a->dims[i], base[i], pad[2 * i], pad[2 * i + 1], window[i], dilation[i],
                                               stride[i]);
            if (!verify_dim_same(r->dims[i], want))
                verify_break(v, k ? "C14" : "C15", "dimension %d of result %u must be %lld, but is %s", i, k, (long long)want,
                             verify_type_text(v, r));
        }
        verify_same_elem(v, "C16", r, types[n + k]);
    }
}

static void check_select_and_scatter(Verify *v) {
    static const WindowList lists[] = {{AK_WINDOW_DIMENSIONS, "C4", "C5"}, {AK_WINDOW_STRIDES, "C6", "C7"}};
    const HloType *a = verify_in(v, 0), *source = verify_in(v, 1), *init = verify_in(v, 2), *elem;
    verify_exact_elem(v, "C1", a, source);
    verify_that(v, init->rank == 0, "I3", "the initial value must be a scalar");
    verify_exact_elem(v, "C3", a, init);
    verify_window_lists(v, a->rank, lists, 2);
    verify_window_padding(v, "C8", a->rank);
    verify_that(v, source->rank == a->rank, "C2", "the source must have the operand's rank");
    uint32_t m;
    const int64_t *window = verify_ints(v, AK_WINDOW_DIMENSIONS, &m);
    const int64_t *stride = verify_ints(v, AK_WINDOW_STRIDES, &m);
    const int64_t *pad = verify_ints(v, AK_PADDING, &m);
    for (int i = 0; i < a->rank; i++) {
        int64_t want = verify_window_steps(a->dims[i], 1, pad[2 * i], pad[2 * i + 1], window[i], 1, stride[i]);
        if (!verify_dim_same(source->dims[i], want))
            verify_break(v, "C2", "dimension %d of the source must be %lld, but it is %s", i, (long long)want,
                         verify_type_text(v, source));
    }
    const HloRegion *r = hlo_op_region(v->h, v->op, 0);
    const HloOp *ret;
    if (r->nargs != 2 || verify_returns(v, 0, &ret) != 1)
        verify_break(v, "C9", "the select computation must take two values and return one");
    for (uint32_t k = 0; k < 2; k++) {
        const HloType *arg = verify_value(v, r->args + k);
        if (arg->kind != HT_TENSOR || arg->rank || !verify_elem_same(arg, a))
            verify_break(v, "C9", "argument %u of the select computation is %s, which is no element of %s", k,
                         verify_type_text(v, arg), verify_type_text(v, a));
    }
    verify_is_scalar(v, "C9", verify_value(v, hlo_operand(v->h, ret, 0)), DT_I1, "the select computation's value");
    verify_combiner(v, "C10", 1, 1, &a, &elem);
    verify_same_shape(v, "C11", a, verify_out(v, 0));
    verify_same_elem(v, "C12", elem, verify_out(v, 0));
}

// --- sort and map ----------------------------------------------------------------------------------

static void check_sort(Verify *v) {
    uint32_t n = v->op->noperands;
    if (!n || v->op->nresults != n)
        verify_break(v, "C1", "%u operands and %u results", n, v->op->nresults);
    const HloType *a = verify_in(v, 0);
    const HloRegion *r = hlo_op_region(v->h, v->op, 0);
    const HloOp *ret;
    if (r->nargs != 2 * n || verify_returns(v, 0, &ret) != 1)
        verify_break(v, "C5", "the comparator must take %u values and return one", 2 * n);
    verify_is_scalar(v, "C5", verify_value(v, hlo_operand(v->h, ret, 0)), DT_I1, "the comparator's value");
    for (uint32_t i = 0; i < n; i++) {
        const HloType *t = verify_in(v, i);
        verify_same_shape(v, "C3", a, t);
        verify_exact_type(v, "C2", t, verify_out(v, i));
        for (int k = 0; k < 2; k++) {
            const HloType *arg = verify_value(v, r->args + 2 * i + (uint32_t)k);
            if (arg->kind != HT_TENSOR || arg->rank || !verify_elem_same(arg, t))
                verify_break(v, "C5", "argument %u of the comparator is %s, which is no element of %s", 2 * i + (uint32_t)k,
                             verify_type_text(v, arg), verify_type_text(v, t));
        }
    }
    int64_t dim = hlo_int(v->op, AK_DIMENSION, 0);
    if (dim < -(int64_t)a->rank || dim >= a->rank)
        verify_break(v, "C4", "dimension %lld of %s", (long long)dim, verify_type_text(v, a));
}

static int64_t fused_kind(const HloOp *op, uint32_t i) {
    uint32_t n;
    const int64_t *kinds = hlo_ints(op, AK_BROADCAST_DIMENSIONS, &n);
    return i < n ? kinds[i] : -1;
}

static void check_map(Verify *v) {
    const HloRegion *body = hlo_op_region(v->h, v->op, 0);
    const HloOp *ret;
    uint32_t nresults = v->op->nresults;
    if (!nresults || body->nargs != v->op->noperands || verify_returns(v, 0, &ret) != nresults)
        verify_break(v, "C4", "the computation must take one value per input and return one per result");
    const HloType *r = verify_out(v, 0);
    for (uint32_t i = 0; i < v->op->noperands; i++) {
        const HloType *t = verify_in(v, i), *arg = verify_value(v, body->args + i);
        if (v->op->code == HLO_FUSED)
            verify_that(v, hlo_fused_fits(t->dims, t->rank, r->dims, r->rank, fused_kind(v->op, i)),
                        NULL, "an operand does not fit the results");
        else
            verify_same_shape(v, "C1", t, r);
        if (arg->kind != HT_TENSOR || arg->rank || !verify_elem_same(arg, t))
            verify_break(v, "C4", "argument %u of the computation is no element of the input", i);
    }
    for (uint32_t i = 0; i < nresults; i++) {
        const HloType *out = verify_value(v, hlo_operand(v->h, ret, i));
        verify_that(v, out->kind == HT_TENSOR && out->rank == 0, "C4", "the computation must return a scalar");
        verify_same_elem(v, "C4", out, verify_out(v, i));
        verify_same_shape(v, "C1", verify_out(v, i), r);
    }
    if (v->op->code == HLO_FUSED)
        return;
    uint32_t n;
    const int64_t *d = verify_ints(v, AK_DIMENSIONS, &n);
    verify_that(v, v->op->noperands > 0, "C2", "there must be an input");
    verify_size(v, "C3", AK_DIMENSIONS, r->rank);
    for (uint32_t i = 0; i < n; i++)
        verify_that(v, d[i] == i, "C3", "dimensions must be 0, 1, … in order");
}

static void check_rows(Verify *v) {
    int64_t rows, columns;
    char why[128];
    verify_that(v, hlo_rows_fit(v->h, v->op, &rows, &columns, why), NULL, why);
}

bool verify_region(Verify *v) {
    static void (*const checks[HLO_OPCODE_COUNT])(Verify *) = {
        [HLO_WHILE] = check_while,
        [HLO_IF] = check_branches,
        [HLO_CASE] = check_branches,
        [HLO_REDUCE] = check_reduce,
        [HLO_REDUCE_WINDOW] = check_reduce_window,
        [HLO_SELECT_AND_SCATTER] = check_select_and_scatter,
        [HLO_SORT] = check_sort,
        [HLO_MAP] = check_map,
        [HLO_FUSED] = check_map,
        [HLO_ROWS] = check_rows,
    };
    if (!checks[v->op->code])
        return false;
    checks[v->op->code](v);
    return true;
}
