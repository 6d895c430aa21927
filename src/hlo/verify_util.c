// SPDX-License-Identifier: Apache-2.0
// verify_util.c — types, shapes and lists compared, and how the difference is told.
#include "hlo/verify.h"

#include <stdio.h>

_Noreturn void verify_fail(Verify *v, const char *fmt, ...) {
    char text[700];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    hlo_fail(v->h, v->id, OTRN_VERIFY, "%s", text);
}

void verify_that(Verify *v, bool ok, const char *rule) {
    if (!ok)
        verify_fail(v, "%s", rule);
}

const char *verify_type_text(Verify *v, const HloType *t) {
    Buf out = {.arena = v->h->arena};
    hlo_print_type(v->h, (TypeId)(t - v->h->types.at), &out);
    const char *s = buf_cstr(&out);
    return strlen(s) < 200 ? s : arena_printf(v->h->arena, "%.190s…", s);
}

// --- operands and results --------------------------------------------------------------------------

const HloType *verify_value(Verify *v, ValueId id) { return hlo_value_type(v->h, id); }

static const HloType *tensor(Verify *v, const HloType *t, const char *what, uint32_t i) {
    if (t->kind != HT_TENSOR)
        verify_fail(v, "%s %u must be a tensor, but is %s", what, i, verify_type_text(v, t));
    return t;
}

const HloType *verify_in(Verify *v, uint32_t i) {
    if (i >= v->op->noperands)
        verify_fail(v, "too few operands: %u", v->op->noperands);
    return tensor(v, verify_value(v, hlo_operand(v->h, v->op, i)), "operand", i);
}

const HloType *verify_out(Verify *v, uint32_t i) {
    if (i >= v->op->nresults)
        verify_fail(v, "too few results: %u", v->op->nresults);
    return tensor(v, verify_value(v, v->op->results + i), "result", i);
}

const int64_t *verify_ints(Verify *v, HloAttrKey key, uint32_t *n) {
    return hlo_ints(v->op, key, n);
}

// --- comparing -------------------------------------------------------------------------------------

bool verify_shape_same(const HloType *a, const HloType *b) {
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (!verify_dim_same(a->dims[i], b->dims[i]))
            return false;
    return true;
}

int verify_elem(const HloType *t) { return verify_is_quantised(t) ? quant_expressed(t) : t->dtype; }

bool verify_elem_same(const HloType *a, const HloType *b) {
    return verify_is_quantised(a) == verify_is_quantised(b) && verify_elem(a) == verify_elem(b);
}

bool verify_type_same(const HloType *a, const HloType *b) {
    return verify_elem_same(a, b) && verify_shape_same(a, b);
}

bool verify_promotable(const HloType *from, int to) {
    const DtypeRow *a = dtype_row(from->dtype), *b = dtype_row(to);
    return from->dtype == to || (a->cls == b->cls && a->bits <= b->bits);
}

bool verify_is_index(const HloType *t) {
    return dtype_is_int(t->dtype) && !verify_is_quantised(t);
}

int verify_complex_part(int dtype) {
    return dtype == DT_C64 ? DT_F32 : dtype == DT_C128 ? DT_F64 : dtype;
}

void verify_same_type(Verify *v, const char *rule, const HloType *a, const HloType *b) {
    if (!verify_type_same(a, b))
        verify_fail(v, "%s: types %s and %s differ", rule, verify_type_text(v, a),
                    verify_type_text(v, b));
}

void verify_same_shape(Verify *v, const char *rule, const HloType *a, const HloType *b) {
    if (!verify_shape_same(a, b))
        verify_fail(v, "%s: shapes of %s and %s differ", rule, verify_type_text(v, a),
                    verify_type_text(v, b));
}

void verify_same_elem(Verify *v, const char *rule, const HloType *a, const HloType *b) {
    if (!verify_elem_same(a, b))
        verify_fail(v, "%s: element types of %s and %s differ", rule, verify_type_text(v, a),
                    verify_type_text(v, b));
}

// --- lists -----------------------------------------------------------------------------------------

void verify_size(Verify *v, HloAttrKey key, uint32_t want) {
    uint32_t n;
    verify_ints(v, key, &n);
    if (n != want)
        verify_fail(v, "%s has %u entries where %u are needed", hlo_attr_rows[key].name, n, want);
}

void verify_dims_in(Verify *v, HloAttrKey key, int64_t rank) {
    uint32_t n;
    const int64_t *d = verify_ints(v, key, &n);
    for (uint32_t i = 0; i < n; i++)
        if (d[i] < 0 || d[i] >= rank)
            verify_fail(v, "%s has %lld, which is not in [0, %lld)", hlo_attr_rows[key].name,
                        (long long)d[i], (long long)rank);
}

// Entries are dimensions, so they are few once they are known to be in range.
void verify_unique(Verify *v, HloAttrKey key) {
    uint32_t n;
    const int64_t *d = verify_ints(v, key, &n);
    bool seen[OTRN_MAX_RANK] = {0};
    for (uint32_t i = 0; i < n; i++) {
        if (d[i] < 0 || d[i] >= OTRN_MAX_RANK || seen[d[i]])
            verify_fail(v, "%s has %lld twice or out of range", hlo_attr_rows[key].name,
                        (long long)d[i]);
        seen[d[i]] = true;
    }
}

void verify_sorted(Verify *v, HloAttrKey key) {
    uint32_t n;
    const int64_t *d = verify_ints(v, key, &n);
    for (uint32_t i = 1; i < n; i++)
        if (d[i - 1] > d[i])
            verify_fail(v, "%s is not in ascending order", hlo_attr_rows[key].name);
}

int64_t verify_dim_attr(Verify *v, HloAttrKey key, int64_t rank) {
    int64_t d = hlo_int(v->op, key, -1);
    if (d < 0 || d >= rank)
        verify_fail(v, "%s is %lld, which is not in [0, %lld)", hlo_attr_rows[key].name, (long long)d,
                    (long long)rank);
    return d;
}

// --- windows ---------------------------------------------------------------------------------------

int64_t verify_window_steps(int64_t dim, int64_t base_dilation, int64_t low, int64_t high,
                            int64_t window, int64_t window_dilation, int64_t stride) {
    if (dim == HLO_DYNAMIC || window == HLO_DYNAMIC)
        return HLO_DYNAMIC;
    __int128 base = dim == 0 ? 0 : (__int128)(dim - 1) * base_dilation + 1;
    __int128 padded = base + low + high;
    __int128 dilated = window == 0 ? 0 : (__int128)(window - 1) * window_dilation + 1;
    if (padded <= 0 || dilated > padded)
        return 0;
    __int128 steps = (padded - dilated) / stride + 1;
    return steps < INT64_MAX / 2 ? (int64_t)steps : INT64_MAX / 2;
}

void verify_window_lists(Verify *v, uint32_t rank, const HloAttrKey *positive, int npositive) {
    for (int k = 0; k < npositive; k++) {
        verify_size(v, positive[k], rank);
        uint32_t n;
        const int64_t *d = verify_ints(v, positive[k], &n);
        for (uint32_t i = 0; i < n; i++)
            if (d[i] <= 0)
                verify_fail(v, "%s has %lld; all must be positive", hlo_attr_rows[positive[k]].name,
                            (long long)d[i]);
    }
}

// --- regions ---------------------------------------------------------------------------------------

uint32_t verify_returns(Verify *v, uint32_t i, const HloOp **ret) {
    const HloRegion *r = hlo_op_region(v->h, v->op, i);
    *ret = hlo_at(v->h, r->ops.at[r->ops.n - 1]); // structure was checked: the last op is RETURN
    return (*ret)->noperands;
}

void verify_combiner(Verify *v, uint32_t i, uint32_t n, const HloType *const *inputs,
                     const HloType **elems) {
    const HloRegion *r = hlo_op_region(v->h, v->op, i);
    const HloOp *ret;
    uint32_t nret = verify_returns(v, i, &ret);
    if (r->nargs != 2 * n || nret != n)
        verify_fail(v, "its computation must take %u values and return %u, but has %u and %u", 2 * n,
                    n, r->nargs, nret);
    for (uint32_t k = 0; k < n; k++) {
        const HloType *a = verify_value(v, r->args + k), *b = verify_value(v, r->args + n + k);
        const HloType *c = verify_value(v, hlo_operand(v->h, ret, k));
        if (a->kind != HT_TENSOR || a->rank != 0)
            verify_fail(v, "its computation must take scalars, not %s", verify_type_text(v, a));
        if (!verify_type_same(a, b) || b->kind != HT_TENSOR || c->kind != HT_TENSOR ||
            !verify_type_same(a, c))
            verify_fail(v, "its computation mixes %s, %s and %s", verify_type_text(v, a),
                        verify_type_text(v, b), verify_type_text(v, c));
        if (!verify_promotable(inputs[k], a->dtype) ||
            verify_is_quantised(inputs[k]) != verify_is_quantised(a))
            verify_fail(v, "elements of %s do not widen to the computation's %s",
                        verify_type_text(v, inputs[k]), verify_type_text(v, a));
        elems[k] = a;
    }
}
