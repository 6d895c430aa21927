// SPDX-License-Identifier: Apache-2.0
// verify_dot.c — products and convolutions.
#include "hlo/verify.h"

static void result_dim(Verify *v, const char *rule, int at, int64_t want) {
    const HloType *r = verify_out(v, 0);
    if (!verify_dim_same(r->dims[at], want))
        verify_break(v, rule, "dimension %d of the result %s must be %lld", at, verify_type_text(v, r), (long long)want);
}

static int quant_axis(Verify *v, const HloType *t) { // -1: not quantised, or one scale for all
    Quant q;
    return verify_is_quantised(t) && !quant_parse(v->h->arena, t, &q) ? q.axis : -1;
}

// --- dot_general -----------------------------------------------------------------------------------

// Batching and contracting dimensions of one side, in range and all different; marks them in `used`.
static void side_dims(Verify *v, HloAttrKey batching, HloAttrKey contracting, const char *const rules[3], const HloType *t,
                      bool used[OTRN_MAX_RANK]) {
    HloAttrKey keys[2] = {batching, contracting};
    for (int k = 0; k < 2; k++) {
        uint32_t n;
        const int64_t *d = verify_ints(v, keys[k], &n);
        verify_dims_in(v, rules[1 + k], keys[k], t->rank);
        for (uint32_t i = 0; i < n; i++) {
            if (used[d[i]])
                verify_break(v, rules[0], "dimension %lld of %s is used twice", (long long)d[i], verify_type_text(v, t));
            used[d[i]] = true;
        }
    }
}

static void pair_dims(Verify *v, const char *count, const char *size, HloAttrKey lhs, HloAttrKey rhs) {
    uint32_t n, m;
    const int64_t *a = verify_ints(v, lhs, &n), *b = verify_ints(v, rhs, &m);
    const HloType *ta = verify_in(v, 0), *tb = verify_in(v, 1);
    if (n != m)
        verify_break(v, count, "%s has %u entries and %s has %u", hlo_attr_rows[lhs].name, n, hlo_attr_rows[rhs].name, m);
    for (uint32_t i = 0; i < n; i++)
        if (!verify_dim_same(ta->dims[a[i]], tb->dims[b[i]]))
            verify_break(v, size, "dimension %lld of %s and dimension %lld of %s differ", (long long)a[i],
                         verify_type_text(v, ta), (long long)b[i], verify_type_text(v, tb));
}

// Elements of plain products: both sides hold one type. The specification stops there, but JAX also multiplies floats
// of different widths (f32 by bf16, two kinds of fp8) and so do XLA's devices: those are let through.
static void product_elems(Verify *v, const char *rule) {
    const HloType *a = verify_in(v, 0), *b = verify_in(v, 1), *r = verify_out(v, 0);
    if (verify_is_quantised(a) || verify_is_quantised(b) || verify_is_quantised(r))
        return;
    if (!dtype_is_float(a->dtype) || !dtype_is_float(b->dtype))
        verify_same_elem(v, rule, a, b);
}

static void check_dot_general(Verify *v) {
    static const char *const lhs_rules[] = {"C3", "C5", "C6"}, *const rhs_rules[] = {"C4", "C7", "C8"};
    static const char *const quantised[] = {"C14", "C15", "C16", NULL, "C17", "C18", "C19", "C20"};
    const HloType *sides[2] = {verify_in(v, 0), verify_in(v, 1)}, *r = verify_out(v, 0);
    bool used[2][OTRN_MAX_RANK] = {0};
    side_dims(v, AK_LHS_BATCHING_DIMENSIONS, AK_LHS_CONTRACTING_DIMENSIONS, lhs_rules, sides[0], used[0]);
    side_dims(v, AK_RHS_BATCHING_DIMENSIONS, AK_RHS_CONTRACTING_DIMENSIONS, rhs_rules, sides[1], used[1]);
    pair_dims(v, "C1", "C9", AK_LHS_BATCHING_DIMENSIONS, AK_RHS_BATCHING_DIMENSIONS);
    pair_dims(v, "C2", "C10", AK_LHS_CONTRACTING_DIMENSIONS, AK_RHS_CONTRACTING_DIMENSIONS);
    uint32_t batch, contract;
    const int64_t *b = verify_ints(v, AK_LHS_BATCHING_DIMENSIONS, &batch);
    const int64_t *c = verify_ints(v, AK_RHS_CONTRACTING_DIMENSIONS, &contract);
    int rank = sides[0]->rank + sides[1]->rank - (int)batch - 2 * (int)contract, at = 0;
    if (r->rank != rank)
        verify_break(v, "C12", "the result must have %d dimensions, but is %s", rank, verify_type_text(v, r));
    for (uint32_t i = 0; i < batch; i++)
        result_dim(v, "C12", at++, sides[0]->dims[b[i]]);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < sides[s]->rank; i++)
            if (!used[s][i])
                result_dim(v, "C12", at++, sides[s]->dims[i]);
    product_elems(v, "C13");
    verify_quant_product(v, quantised, -1, -1);
    for (uint32_t i = 0; i < contract; i++)
        verify_that(v, quant_axis(v, sides[1]) != c[i], "C16", "scales differ along a dimension that is summed over");
    verify_precision(v, "C11");
    verify_dot_algorithm(v);
}

static void check_dot(Verify *v) { // an older op: no numbers
    const HloType *a = verify_in(v, 0), *b = verify_in(v, 1), *r = verify_out(v, 0);
    verify_that(v, a->rank >= 1 && a->rank <= 2 && b->rank >= 1 && b->rank <= 2, NULL, "operands must be vectors or matrices");
    verify_that(v, verify_dim_same(a->dims[a->rank - 1], b->dims[0]), NULL, "the contracted dimensions differ");
    verify_that(v, r->rank == a->rank + b->rank - 2, NULL, "the result has the wrong rank");
    int at = 0;
    if (a->rank == 2)
        result_dim(v, NULL, at++, a->dims[0]);
    if (b->rank == 2)
        result_dim(v, NULL, at, b->dims[1]);
    product_elems(v, NULL);
    verify_precision(v, NULL);
}

// --- einsum ------------------------------------------------------------------------------------------

// "ab,bc->ac": a letter has one size wherever it stands, "…" is not supported here. Older ops: no numbers.
static void check_einsum(Verify *v) {
    const char *s = hlo_attr_str(v->op, AK_EINSUM_CONFIG), *arrow = strstr(s, "->");
    int64_t size[128];
    bool seen[128] = {0};
    verify_that(v, arrow, NULL, "einsum_config must read like ab,bc->ac");
    uint32_t operand = 0;
    int dim = 0;
    for (const char *c = s; c < arrow + 2; c++) {
        if (*c == ',' || c == arrow) {
            verify_that(v, operand < v->op->noperands && verify_in(v, operand)->rank == dim, NULL,
                        "einsum_config names another number of dimensions than an operand has");
            operand++, dim = 0;
            if (c == arrow)
                break;
            continue;
        }
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
        verify_that(v, letter && operand < v->op->noperands && dim < verify_in(v, operand)->rank, NULL,
                    "einsum_config does not fit the operands");
        int64_t n = verify_in(v, operand)->dims[dim++];
        verify_that(v, !seen[(int)*c] || verify_dim_same(size[(int)*c], n), NULL, "a letter of einsum_config has two sizes");
        if (!seen[(int)*c] || size[(int)*c] == HLO_DYNAMIC)
            size[(int)*c] = n;
        seen[(int)*c] = true;
    }
    verify_that(v, operand == v->op->noperands, NULL, "einsum_config does not name every operand");
    const HloType *r = verify_out(v, 0);
    bool out[128] = {0};
    const char *c = arrow + 2;
    for (int i = 0; *c; c++, i++) {
        bool known = *c > 0 && seen[(int)*c] && !out[(int)*c] && i < r->rank;
        verify_that(v, known && verify_dim_same(r->dims[i], size[(int)*c]), NULL, "the result does not fit einsum_config");
        out[(int)*c] = true;
    }
    verify_that(v, (size_t)r->rank == strlen(arrow + 2), NULL, "the result does not fit einsum_config");
    for (uint32_t i = 1; i < v->op->noperands; i++)
        verify_same_elem(v, NULL, verify_in(v, 0), verify_in(v, i));
    verify_that(v, verify_promotable(verify_in(v, 0), r), NULL, "the result must hold the operands' elements, or wider ones of their kind");
}

// --- convolution -----------------------------------------------------------------------------------

// Two single dimensions and the spatial ones must be exactly the dimensions of t.
static void layout(Verify *v, const char *count, const char *rule, HloAttrKey one, HloAttrKey two, HloAttrKey spatial,
                   const HloType *t) {
    bool used[OTRN_MAX_RANK] = {0};
    uint32_t n;
    const int64_t *s = verify_ints(v, spatial, &n);
    int64_t all[OTRN_MAX_RANK + 2] = {verify_dim_attr(v, rule, one, t->rank), verify_dim_attr(v, rule, two, t->rank)};
    verify_size(v, count, spatial, t->rank >= 2 ? t->rank - 2u : 0);
    verify_dims_in(v, rule, spatial, t->rank);
    for (uint32_t i = 0; i < n; i++)
        all[2 + i] = s[i];
    for (uint32_t i = 0; i < n + 2; i++) {
        if (used[all[i]])
            verify_break(v, rule, "dimension %lld of %s has two meanings", (long long)all[i], verify_type_text(v, t));
        used[all[i]] = true;
    }
}

static bool divides(int64_t by, int64_t n) { return n == HLO_DYNAMIC || n % by == 0; }
static int64_t quotient(int64_t n, int64_t by) { return n == HLO_DYNAMIC ? n : n / by; }

static void conv_groups(Verify *v, const HloType *a, const HloType *k) {
    int64_t fg = hlo_int(v->op, AK_FEATURE_GROUP_COUNT, 0);
    int64_t bg = hlo_int(v->op, AK_BATCH_GROUP_COUNT, 0);
    verify_that(v, fg > 0, "C21", "feature_group_count must be positive");
    verify_that(v, bg > 0, "C22", "batch_group_count must be positive");
    verify_that(v, fg == 1 || bg == 1, "C23", "feature_group_count and batch_group_count must not both be above 1");
    int64_t batch = a->dims[hlo_int(v->op, AK_INPUT_BATCH_DIMENSION, 0)];
    int64_t features = a->dims[hlo_int(v->op, AK_INPUT_FEATURE_DIMENSION, 0)];
    int64_t in = k->dims[hlo_int(v->op, AK_KERNEL_INPUT_FEATURE_DIMENSION, 0)];
    int64_t out = k->dims[hlo_int(v->op, AK_KERNEL_OUTPUT_FEATURE_DIMENSION, 0)];
    verify_that(v, divides(bg, batch), "C10", "batch_group_count does not divide the batch");
    verify_that(v, divides(fg, features), "C11", "feature_group_count does not divide the input features");
    if (!verify_dim_same(in, quotient(features, fg)))
        verify_break(v, "C14", "the kernel takes %lld input features, but each group has %lld", (long long)in,
                     (long long)quotient(features, fg));
    verify_that(v, divides(bg, out), "C15", "batch_group_count does not divide the output features");
    verify_that(v, divides(fg, out), "C16", "feature_group_count does not divide the output features");
    result_dim(v, "C25", (int)hlo_int(v->op, AK_OUTPUT_BATCH_DIMENSION, 0), quotient(batch, bg));
    result_dim(v, "C25", (int)hlo_int(v->op, AK_OUTPUT_FEATURE_DIMENSION, 0), out);
}

static void conv_spatial(Verify *v, const HloType *a, const HloType *k, uint32_t n) {
    static const WindowList lists[] = {
        {AK_WINDOW_STRIDES, "C2", "C3"}, {AK_LHS_DILATION, "C5", "C6"}, {AK_RHS_DILATION, "C7", "C8"}};
    uint32_t m, strides;
    const int64_t *kernel = verify_ints(v, AK_KERNEL_SPATIAL_DIMENSIONS, &m);
    verify_ints(v, AK_WINDOW_STRIDES, &strides);
    bool longer = v->op->code == HLO_DYNAMIC_CONV && strides > n; // JAX writes such; the rest is not looked at
    verify_window_lists(v, longer ? strides : n, lists, 1);
    verify_window_lists(v, n, lists + 1, 2);
    verify_size(v, "C9", AK_WINDOW_REVERSAL, n);
    if (v->op->code == HLO_DYNAMIC_CONV) {
        const HloType *pad = verify_in(v, 2);
        verify_that(v, pad->rank == 2 && verify_is_index(pad), "I3", "padding must be a matrix of integers");
        verify_that(v, verify_dim_same(pad->dims[0], n) && verify_dim_same(pad->dims[1], 2), "C4",
                    "padding must hold a pair of numbers per spatial dimension");
        return;
    }
    verify_window_padding(v, "C4", n);
    const int64_t *pad = verify_ints(v, AK_PADDING, &m);
    const int64_t *in = verify_ints(v, AK_INPUT_SPATIAL_DIMENSIONS, &m);
    const int64_t *out = verify_ints(v, AK_OUTPUT_SPATIAL_DIMENSIONS, &m);
    const int64_t *stride = verify_ints(v, AK_WINDOW_STRIDES, &m);
    const int64_t *lhs = verify_ints(v, AK_LHS_DILATION, &m);
    const int64_t *rhs = verify_ints(v, AK_RHS_DILATION, &m);
    for (uint32_t i = 0; i < n; i++)
        result_dim(v, "C25", (int)out[i],
                   verify_window_steps(a->dims[in[i]], lhs[i], pad[2 * i], pad[2 * i + 1], k->dims[kernel[i]], rhs[i],
                                       stride[i]));
}

static void check_convolution(Verify *v) {
    static const char *const quantised[] = {"C28", NULL, "C29", "C30", "C31", "C32", "C33", "C34"};
    const HloType *a = verify_in(v, 0), *k = verify_in(v, 1), *r = verify_out(v, 0);
    if (a->rank != k->rank || a->rank < 2)
        verify_break(v, "C1", "%s and %s must have one rank of at least 2", verify_type_text(v, a), verify_type_text(v, k));
    verify_that(v, a->rank == r->rank, "C26", "the result must have the operands' rank");
    layout(v, "C12", "C13", AK_INPUT_BATCH_DIMENSION, AK_INPUT_FEATURE_DIMENSION, AK_INPUT_SPATIAL_DIMENSIONS, a);
    layout(v, "C17", "C18", AK_KERNEL_INPUT_FEATURE_DIMENSION, AK_KERNEL_OUTPUT_FEATURE_DIMENSION,
           AK_KERNEL_SPATIAL_DIMENSIONS, k);
    layout(v, "C19", "C20", AK_OUTPUT_BATCH_DIMENSION, AK_OUTPUT_FEATURE_DIMENSION, AK_OUTPUT_SPATIAL_DIMENSIONS, r);
    conv_groups(v, a, k);
    conv_spatial(v, a, k, a->rank - 2u);
    verify_precision(v, "C24");
    product_elems(v, "C27");
    verify_quant_product(v, quantised, (int)hlo_int(v->op, AK_KERNEL_OUTPUT_FEATURE_DIMENSION, 0),
                         (int)hlo_int(v->op, AK_OUTPUT_FEATURE_DIMENSION, 0));
}

bool verify_dot(Verify *v) {
    switch (v->op->code) {
    case HLO_DOT_GENERAL:
        check_dot_general(v);
        return true;
    case HLO_DOT:
        check_dot(v);
        return true;
    case HLO_CONVOLUTION:
    case HLO_DYNAMIC_CONV:
        check_convolution(v);
        return true;
    case HLO_EINSUM:
    case HLO_UNARY_EINSUM:
        check_einsum(v);
        return true;
    default:
        return false;
    }
}
