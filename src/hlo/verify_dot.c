// SPDX-License-Identifier: Apache-2.0
// verify_dot.c — products and convolutions.
#include "hlo/verify.h"

static void result_dim(Verify *v, const char *rule, int at, int64_t want) {
    const HloType *r = verify_out(v, 0);
    if (!verify_dim_same(r->dims[at], want))
        verify_fail(v, "%s: dimension %d of the result %s must be %lld", rule, at,
                    verify_type_text(v, r), (long long)want);
}

// --- dot_general -----------------------------------------------------------------------------------

// Batching and contracting dimensions of one side, in range and all different; marks them in `used`.
static void side_dims(Verify *v, HloAttrKey batching, HloAttrKey contracting, const HloType *t,
                      bool used[OTRN_MAX_RANK]) {
    HloAttrKey keys[2] = {batching, contracting};
    for (int k = 0; k < 2; k++) {
        uint32_t n;
        const int64_t *d = verify_ints(v, keys[k], &n);
        verify_dims_in(v, keys[k], t->rank);
        for (uint32_t i = 0; i < n; i++) {
            if (used[d[i]])
                verify_fail(v, "C3, C4: dimension %lld of %s is used twice", (long long)d[i],
                            verify_type_text(v, t));
            used[d[i]] = true;
        }
    }
}

static void pair_dims(Verify *v, const char *rule, HloAttrKey lhs, HloAttrKey rhs) {
    uint32_t n, m;
    const int64_t *a = verify_ints(v, lhs, &n), *b = verify_ints(v, rhs, &m);
    const HloType *ta = verify_in(v, 0), *tb = verify_in(v, 1);
    if (n != m)
        verify_fail(v, "%s has %u entries and %s has %u", hlo_attr_rows[lhs].name, n,
                    hlo_attr_rows[rhs].name, m);
    for (uint32_t i = 0; i < n; i++)
        if (!verify_dim_same(ta->dims[a[i]], tb->dims[b[i]]))
            verify_fail(v, "%s: dimension %lld of %s and dimension %lld of %s differ", rule,
                        (long long)a[i], verify_type_text(v, ta), (long long)b[i],
                        verify_type_text(v, tb));
}

static void check_dot_general(Verify *v) {
    const HloType *sides[2] = {verify_in(v, 0), verify_in(v, 1)}, *r = verify_out(v, 0);
    bool used[2][OTRN_MAX_RANK] = {0};
    side_dims(v, AK_LHS_BATCHING_DIMENSIONS, AK_LHS_CONTRACTING_DIMENSIONS, sides[0], used[0]);
    side_dims(v, AK_RHS_BATCHING_DIMENSIONS, AK_RHS_CONTRACTING_DIMENSIONS, sides[1], used[1]);
    pair_dims(v, "C9", AK_LHS_BATCHING_DIMENSIONS, AK_RHS_BATCHING_DIMENSIONS);
    pair_dims(v, "C10", AK_LHS_CONTRACTING_DIMENSIONS, AK_RHS_CONTRACTING_DIMENSIONS);
    uint32_t batch, contract;
    const int64_t *b = verify_ints(v, AK_LHS_BATCHING_DIMENSIONS, &batch);
    verify_ints(v, AK_LHS_CONTRACTING_DIMENSIONS, &contract);
    int rank = sides[0]->rank + sides[1]->rank - (int)batch - 2 * (int)contract;
    if (r->rank != rank)
        verify_fail(v, "C12: the result must have %d dimensions, but is %s", rank,
                    verify_type_text(v, r));
    int at = 0;
    for (uint32_t i = 0; i < batch; i++)
        result_dim(v, "C12", at++, sides[0]->dims[b[i]]);
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < sides[s]->rank; i++)
            if (!used[s][i])
                result_dim(v, "C12", at++, sides[s]->dims[i]);
    const HloAttr *precision = hlo_attr(v->op, AK_PRECISION_CONFIG);
    verify_that(v, !precision || precision->n == 2, "C11: precision_config needs two entries");
}

static void check_dot(Verify *v) {
    const HloType *a = verify_in(v, 0), *b = verify_in(v, 1), *r = verify_out(v, 0);
    verify_that(v, a->rank >= 1 && a->rank <= 2 && b->rank >= 1 && b->rank <= 2,
                "operands must be vectors or matrices");
    verify_that(v, verify_dim_same(a->dims[a->rank - 1], b->dims[0]),
                "the contracted dimensions differ");
    verify_that(v, r->rank == a->rank + b->rank - 2, "the result has the wrong rank");
    int at = 0;
    if (a->rank == 2)
        result_dim(v, "shape", at++, a->dims[0]);
    if (b->rank == 2)
        result_dim(v, "shape", at, b->dims[1]);
}

// --- convolution -----------------------------------------------------------------------------------

// Two single dimensions and the spatial ones must be exactly the dimensions of t.
static void layout(Verify *v, HloAttrKey one, HloAttrKey two, HloAttrKey spatial, const HloType *t) {
    bool used[OTRN_MAX_RANK] = {0};
    uint32_t n;
    const int64_t *s = verify_ints(v, spatial, &n);
    int64_t all[OTRN_MAX_RANK + 2] = {verify_dim_attr(v, one, t->rank),
                                      verify_dim_attr(v, two, t->rank)};
    verify_size(v, spatial, t->rank >= 2 ? t->rank - 2u : 0);
    verify_dims_in(v, spatial, t->rank);
    for (uint32_t i = 0; i < n; i++)
        all[2 + i] = s[i];
    for (uint32_t i = 0; i < n + 2; i++) {
        if (used[all[i]])
            verify_fail(v, "dimension %lld of %s has two meanings", (long long)all[i],
                        verify_type_text(v, t));
        used[all[i]] = true;
    }
}

static bool divides(int64_t by, int64_t n) { return n == HLO_DYNAMIC || n % by == 0; }
static int64_t quotient(int64_t n, int64_t by) { return n == HLO_DYNAMIC ? n : n / by; }

static void conv_groups(Verify *v, const HloType *a, const HloType *k) {
    int64_t fg = hlo_int(v->op, AK_FEATURE_GROUP_COUNT, 0);
    int64_t bg = hlo_int(v->op, AK_BATCH_GROUP_COUNT, 0);
    verify_that(v, fg > 0 && bg > 0, "group counts must be positive");
    verify_that(v, fg == 1 || bg == 1,
                "feature_group_count and batch_group_count must not both be above 1");
    int64_t batch = a->dims[hlo_int(v->op, AK_INPUT_BATCH_DIMENSION, 0)];
    int64_t features = a->dims[hlo_int(v->op, AK_INPUT_FEATURE_DIMENSION, 0)];
    int64_t in = k->dims[hlo_int(v->op, AK_KERNEL_INPUT_FEATURE_DIMENSION, 0)];
    int64_t out = k->dims[hlo_int(v->op, AK_KERNEL_OUTPUT_FEATURE_DIMENSION, 0)];
    verify_that(v, divides(bg, batch), "batch_group_count does not divide the batch");
    verify_that(v, divides(fg, features), "feature_group_count does not divide the input features");
    verify_that(v, divides(bg, out) && divides(fg, out),
                "the group count does not divide the output features");
    if (!verify_dim_same(in, quotient(features, fg)))
        verify_fail(v, "the kernel takes %lld input features, but each group has %lld", (long long)in,
                    (long long)quotient(features, fg));
    result_dim(v, "batch", (int)hlo_int(v->op, AK_OUTPUT_BATCH_DIMENSION, 0), quotient(batch, bg));
    result_dim(v, "features", (int)hlo_int(v->op, AK_OUTPUT_FEATURE_DIMENSION, 0), out);
}

static void conv_spatial(Verify *v, const HloType *a, const HloType *k, uint32_t n) {
    static const HloAttrKey positive[] = {AK_WINDOW_STRIDES, AK_LHS_DILATION, AK_RHS_DILATION};
    // frameworks write dynamic_conv with longer lists than it has spatial dimensions; upstream lets them
    if (v->op->code == HLO_DYNAMIC_CONV)
        return;
    verify_window_lists(v, n, positive, 3);
    verify_size(v, AK_WINDOW_REVERSAL, n);
    uint32_t m;
    const int64_t *pad = verify_ints(v, AK_PADDING, &m);
    if (m != 2 * n)
        verify_fail(v, "padding has %u numbers where %u are needed", m, 2 * n);
    const int64_t *in = verify_ints(v, AK_INPUT_SPATIAL_DIMENSIONS, &m);
    const int64_t *kernel = verify_ints(v, AK_KERNEL_SPATIAL_DIMENSIONS, &m);
    const int64_t *out = verify_ints(v, AK_OUTPUT_SPATIAL_DIMENSIONS, &m);
    const int64_t *stride = verify_ints(v, AK_WINDOW_STRIDES, &m);
    const int64_t *lhs = verify_ints(v, AK_LHS_DILATION, &m);
    const int64_t *rhs = verify_ints(v, AK_RHS_DILATION, &m);
    for (uint32_t i = 0; i < n; i++)
        result_dim(v, "window", (int)out[i],
                   verify_window_steps(a->dims[in[i]], lhs[i], pad[2 * i], pad[2 * i + 1],
                                       k->dims[kernel[i]], rhs[i], stride[i]));
}

static void check_convolution(Verify *v) {
    const HloType *a = verify_in(v, 0), *k = verify_in(v, 1), *r = verify_out(v, 0);
    if (a->rank != k->rank || a->rank != r->rank || a->rank < 2)
        verify_fail(v, "%s, %s and %s must have one rank of at least 2", verify_type_text(v, a),
                    verify_type_text(v, k), verify_type_text(v, r));
    layout(v, AK_INPUT_BATCH_DIMENSION, AK_INPUT_FEATURE_DIMENSION, AK_INPUT_SPATIAL_DIMENSIONS, a);
    layout(v, AK_KERNEL_INPUT_FEATURE_DIMENSION, AK_KERNEL_OUTPUT_FEATURE_DIMENSION,
           AK_KERNEL_SPATIAL_DIMENSIONS, k);
    layout(v, AK_OUTPUT_BATCH_DIMENSION, AK_OUTPUT_FEATURE_DIMENSION, AK_OUTPUT_SPATIAL_DIMENSIONS,
           r);
    conv_groups(v, a, k);
    conv_spatial(v, a, k, a->rank - 2u);
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
        verify_in(v, 0);
        verify_out(v, 0);
        return true;
    default:
        return false;
    }
}
