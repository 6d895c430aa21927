// SPDX-License-Identifier: Apache-2.0
// verify_util.c — types, shapes and lists compared, and how the difference is told.
#include "hlo/verify.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void verify_fail(Verify *v, const char *fmt, ...) {
    char text[700];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    hlo_fail(v->h, v->id, OTRN_VERIFY, "%s", text);
}

_Noreturn void verify_break(Verify *v, const char *rule, const char *fmt, ...) {
    char text[700];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (rule)
        verify_fail(v, "%s (%s)", text, rule);
    verify_fail(v, "%s", text);
}

void verify_that(Verify *v, bool ok, const char *rule, const char *what) {
    if (!ok)
        verify_break(v, rule, "%s", what);
}

const char *verify_input_name(uint32_t i) {
    static const char *const names[] = {"I1", "I2", "I3", "I4", "I5"};
    return names[i < 5 ? i : 4];
}

const char *verify_type_text(Verify *v, const HloType *t) {
    Buf out = {.arena = v->h->arena};
    hlo_print_type(v->h, (TypeId)(t - v->h->types.at), &out);
    const char *s = buf_cstr(&out);
    return strlen(s) < 200 ? s : arena_printf(v->h->arena, "%.190s…", s);
}

// --- operands and results --------------------------------------------------------------------------

const HloType *verify_value(Verify *v, ValueId id) { return hlo_value_type(v->h, id); }

static const HloType *tensor(Verify *v, const HloType *t, const char *rule, const char *what, uint32_t i) {
    if (t->kind != HT_TENSOR)
        verify_break(v, rule, "%s %u must be a tensor, but is %s", what, i, verify_type_text(v, t));
    return t;
}

static const char *input_rule(const Verify *v, uint32_t i) { // all operands of a variadic op are its first input
    return hlo_row(v->op)->dialect == HD_STABLEHLO ? verify_input_name(hlo_row(v->op)->operands < 0 ? 0 : i) : NULL;
}

const HloType *verify_in(Verify *v, uint32_t i) {
    if (i >= v->op->noperands)
        verify_fail(v, "too few operands: %u", v->op->noperands);
    return tensor(v, verify_value(v, hlo_operand(v->h, v->op, i)), input_rule(v, i), "operand", i);
}

const HloType *verify_out(Verify *v, uint32_t i) {
    if (i >= v->op->nresults)
        verify_fail(v, "too few results: %u", v->op->nresults);
    return tensor(v, verify_value(v, v->op->results + i), NULL, "result", i);
}

const int64_t *verify_ints(Verify *v, HloAttrKey key, uint32_t *n) {
    return hlo_ints(v->op, key, n);
}

// --- comparing -------------------------------------------------------------------------------------

int64_t verify_bound(const HloType *t, int dim) {
    static const char head[] = "#stablehlo.bounds<";
    if (!t->text || strncmp(t->text, head, sizeof head - 1))
        return INT64_MAX;
    const char *s = t->text + sizeof head - 1;
    for (int i = 0; i < dim && s; i++)
        s = (s = strchr(s, ',')) ? s + 1 : NULL;
    while (s && *s == ' ')
        s++;
    return s && *s >= '0' && *s <= '9' ? strtoll(s, NULL, 10) : INT64_MAX;
}

bool verify_shape_same(const HloType *a, const HloType *b) {
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (!verify_dim_same(a->dims[i], b->dims[i]) || a->dims[i] > verify_bound(b, i) || b->dims[i] > verify_bound(a, i))
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

static bool dtype_widens(int from, int to) {
    const DtypeRow *a = dtype_row(from), *b = dtype_row(to);
    return from == to || (a->cls == b->cls && a->bits <= b->bits);
}

bool verify_promotable(const HloType *from, const HloType *to) {
    if (verify_is_quantised(from) != verify_is_quantised(to))
        return false;
    return dtype_widens(from->dtype, to->dtype) &&
           (!verify_is_quantised(from) || verify_elem(from) == verify_elem(to));
}

bool verify_is_index(const HloType *t) {
    return dtype_is_int(t->dtype) && !verify_is_quantised(t);
}

int verify_complex_part(int dtype) {
    return dtype == DT_C64 ? DT_F32 : dtype == DT_C128 ? DT_F64 : dtype;
}

static void differ(Verify *v, const char *rule, const char *what, const HloType *a, const HloType *b) {
    verify_break(v, rule, "%s %s and %s differ", what, verify_type_text(v, a), verify_type_text(v, b));
}

void verify_same_type(Verify *v, const char *rule, const HloType *a, const HloType *b) {
    if (!verify_type_same(a, b))
        differ(v, rule, "types", a, b);
}

void verify_same_shape(Verify *v, const char *rule, const HloType *a, const HloType *b) {
    if (!verify_shape_same(a, b))
        differ(v, rule, "the shapes of", a, b);
}

void verify_same_elem(Verify *v, const char *rule, const HloType *a, const HloType *b) {
    if (!verify_elem_same(a, b))
        differ(v, rule, "the element types of", a, b);
}

void verify_exact_elem(Verify *v, const char *rule, const HloType *a, const HloType *b) {
    bool quantised = verify_is_quantised(a); // equal types have equal text
    if (a->dtype != b->dtype || quantised != verify_is_quantised(b) || (quantised && strcmp(a->text, b->text)))
        differ(v, rule, "the element types of", a, b);
}

void verify_exact_type(Verify *v, const char *rule, const HloType *a, const HloType *b) {
    verify_exact_elem(v, rule, a, b);
    verify_same_shape(v, rule, a, b);
}

// --- lists -----------------------------------------------------------------------------------------

void verify_size(Verify *v, const char *rule, HloAttrKey key, uint32_t want) {
    uint32_t n;
    verify_ints(v, key, &n);
    if (n != want)
        verify_break(v, rule, "%s has %u entries where %u are needed", hlo_attr_rows[key].name, n, want);
}

void verify_dims_in(Verify *v, const char *rule, HloAttrKey key, int64_t rank) {
    uint32_t n;
    const int64_t *d = verify_ints(v, key, &n);
    for (uint32_t i = 0; i < n; i++)
        if (d[i] < 0 || d[i] >= rank)
            verify_break(v, rule, "%s has %lld, which is not in [0, %lld)", hlo_attr_rows[key].name, (long long)d[i],
                         (long long)rank);
}

// Entries are dimensions, so they are few once they are known to be in range.
void verify_unique(Verify *v, const char *rule, HloAttrKey key) {
    uint32_t n;
    const int64_t *d = verify_ints(v, key, &n);
    bool seen[OTRN_MAX_RANK] = {0};
    for (uint32_t i = 0; i < n; i++) {
        if (d[i] < 0 || d[i] >= OTRN_MAX_RANK || seen[d[i]])
            verify_break(v, rule, "%s has %lld twice or out of range", hlo_attr_rows[key].name, (long long)d[i]);
        seen[d[i]] = true;
    }
}

void verify_sorted(Verify *v, const char *rule, HloAttrKey key) {
    uint32_t n;
    const int64_t *d = verify_ints(v, key, &n);
    for (uint32_t i = 1; i < n; i++)
        if (d[i - 1] > d[i])
            verify_break(v, rule, "%s is not in ascending order", hlo_attr_rows[key].name);
}

int64_t verify_dim_attr(Verify *v, const char *rule, HloAttrKey key, int64_t rank) {
    int64_t d = hlo_int(v->op, key, -1);
    if (d < 0 || d >= rank)
        verify_break(v, rule, "%s is %lld, which is not in [0, %lld)", hlo_attr_rows[key].name, (long long)d, (long long)rank);
    return d;
}

bool verify_known_ints(Verify *v, uint32_t operand, int64_t out[OTRN_MAX_RANK], uint32_t *n) {
    OpId def = v->h->values.at[hlo_operand(v->h, v->op, operand)].def;
    const HloAttr *a = def && hlo_at(v->h, def)->code == HLO_CONSTANT ? hlo_attr(hlo_at(v->h, def), AK_VALUE) : NULL;
    const HloType *t = a ? hlo_type(v->h, a->type) : NULL;
    if (!t || t->rank != 1 || t->dynamic || t->elems > OTRN_MAX_RANK || !verify_is_index(t))
        return false;
    size_t bytes = dtype_bytes(t->dtype);
    *n = (uint32_t)t->elems;
    for (uint32_t i = 0; i < *n; i++)
        out[i] = dtype_to_i64(t->dtype, (const uint8_t *)a->data + (hlo_tensor_is_splat(v->h, a) ? 0 : i * bytes));
    return true;
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

void verify_window_lists(Verify *v, uint32_t rank, const WindowList *lists, int n) {
    for (int k = 0; k < n; k++) {
        verify_size(v, lists[k].size, lists[k].key, rank);
        uint32_t count;
        const int64_t *d = verify_ints(v, lists[k].key, &count);
        for (uint32_t i = 0; i < count; i++)
            if (d[i] <= 0)
                verify_break(v, lists[k].positive, "%s has %lld; all must be positive", hlo_attr_rows[lists[k].key].name,
                             (long long)d[i]);
    }
}

void verify_window_padding(Verify *v, const char *rule, uint32_t rank) {
    const HloAttr *a = hlo_attr(v->op, AK_PADDING);
    if (!a || a->n != 2 * rank || (a->n && a->cols != 2))
        verify_break(v, rule, "padding must hold %u pairs of numbers", rank);
}

// --- regions ---------------------------------------------------------------------------------------

uint32_t verify_returns(Verify *v, uint32_t i, const HloOp **ret) {
    const HloRegion *r = hlo_op_region(v->h, v->op, i);
    *ret = hlo_at(v->h, r->ops.at[r->ops.n - 1]); // structure was checked: the last op is RETURN
    return (*ret)->noperands;
}

void verify_is_scalar(Verify *v, const char *rule, const HloType *t, int dtype, const char *what) {
    if (t->kind != HT_TENSOR || t->rank || t->dtype != dtype || verify_is_quantised(t))
        verify_break(v, rule, "%s must be tensor<%s>, but is %s", what, dtype_row(dtype)->name, verify_type_text(v, t));
}

void verify_combiner(Verify *v, const char *rule, uint32_t i, uint32_t n, const HloType *const *inputs,
                     const HloType **elems) {
    const HloRegion *r = hlo_op_region(v->h, v->op, i);
    const HloOp *ret;
    uint32_t nret = verify_returns(v, i, &ret);
    if (r->nargs != 2 * n || nret != n)
        verify_break(v, rule, "its computation must take %u values and return %u, but has %u and %u", 2 * n, n, r->nargs,
                     nret);
    for (uint32_t k = 0; k < n; k++) {
        const HloType *a = verify_value(v, r->args + k), *b = verify_value(v, r->args + n + k);
        const HloType *c = verify_value(v, hlo_operand(v->h, ret, k));
        if (a->kind != HT_TENSOR || a->rank != 0)
            verify_break(v, rule, "its computation must take scalars, not %s", verify_type_text(v, a));
        if (b->kind != HT_TENSOR || c->kind != HT_TENSOR || !verify_type_same(a, b) || !verify_type_same(a, c))
            verify_break(v, rule, "its computation mixes %s, %s and %s", verify_type_text(v, a), verify_type_text(v, b),
                         verify_type_text(v, c));
        if (!verify_promotable(inputs[k], a))
            verify_break(v, rule, "elements of %s do not widen to the computation's %s", verify_type_text(v, inputs[k]),
                         verify_type_text(v, a));
        elems[k] = a;
    }
}
