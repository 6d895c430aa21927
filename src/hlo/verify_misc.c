// SPDX-License-Identifier: Apache-2.0
// verify_misc.c — the rest: constants, tuples, collectives, linear algebra, random numbers, checks.
//
// Sizes that depend on the number of devices are only checked for divisibility: the program does not
// say how many there are.
#include "hlo/verify.h"

static bool same_value_type(Verify *v, ValueId a, ValueId b) {
    const HloType *x = verify_value(v, a), *y = verify_value(v, b);
    if (x->kind != HT_TENSOR || y->kind != HT_TENSOR)
        return x == y;
    return verify_type_same(x, y);
}

static void each_result_like_operand(Verify *v) {
    if (v->op->noperands != v->op->nresults)
        verify_fail(v, "%u results for %u operands", v->op->nresults, v->op->noperands);
    for (uint32_t i = 0; i < v->op->nresults; i++)
        if (!same_value_type(v, hlo_operand(v->h, v->op, i), v->op->results + i))
            verify_fail(v, "operand %u is %s, but its result is %s", i,
                        verify_type_text(v, verify_value(v, hlo_operand(v->h, v->op, i))),
                        verify_type_text(v, verify_value(v, v->op->results + i)));
}

static void is_token(Verify *v, ValueId id, const char *what) {
    if (verify_value(v, id)->kind != HT_TOKEN)
        verify_fail(v, "%s must be a token, but is %s", what,
                    verify_type_text(v, verify_value(v, id)));
}

// --- values ----------------------------------------------------------------------------------------

static void check_constant(Verify *v) {
    const HloAttr *a = hlo_attr(v->op, AK_VALUE);
    const HloType *value = hlo_type(v->h, a->type);
    const HloType *r = verify_out(v, 0);
    bool stored = verify_is_quantised(r) && !verify_is_quantised(value); // written as integers
    verify_that(v, !stored || (value->dtype == r->dtype && verify_shape_same(value, r)),
                "C1: the value does not hold the integers that the result is stored in");
    if (!stored)
        verify_same_type(v, "C1: value and result", value, r);
}

static void check_tuple(Verify *v) {
    const HloType *t = verify_value(v, v->op->results);
    if (t->kind != HT_TUPLE || t->nmembers != v->op->noperands)
        verify_fail(v, "C1: %s is no tuple of %u values", verify_type_text(v, t), v->op->noperands);
    for (uint32_t i = 0; i < t->nmembers; i++)
        if (v->h->values.at[hlo_operand(v->h, v->op, i)].type != t->members[i])
            verify_fail(v, "C1: operand %u is not of the tuple's type", i);
}

static void check_get_tuple_element(Verify *v) {
    const HloType *t = verify_value(v, hlo_operand(v->h, v->op, 0));
    int64_t i = hlo_int(v->op, AK_INDEX, -1);
    if (t->kind != HT_TUPLE || i < 0 || i >= t->nmembers)
        verify_fail(v, "C1: element %lld of %s", (long long)i, verify_type_text(v, t));
    if (t->members[i] != v->h->values.at[v->op->results].type)
        verify_fail(v, "C2: the result is not of the element's type");
}

static void check_dimension_size(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    verify_dim_attr(v, AK_DIMENSION, a->rank);
    if (v->op->code == HLO_GET_DIMENSION_SIZE) {
        verify_that(v, r->rank == 0 && r->dtype == DT_I32, "the result must be tensor<i32>");
        return;
    }
    const HloType *size = verify_in(v, 1);
    verify_that(v, size->rank == 0 && verify_is_index(size), "the size must be an integer scalar");
    verify_that(v, a->rank == r->rank, "the result must have the operand's rank");
    verify_same_elem(v, "operand and result", a, r);
}

static void check_id(Verify *v) {
    const HloType *r = verify_out(v, 0);
    verify_that(v, r->rank == 0 && r->dtype == DT_UI32, "the result must be tensor<ui32>");
}

static void check_tokens(Verify *v) {
    for (uint32_t i = 0; i < v->op->noperands; i++)
        is_token(v, hlo_operand(v->h, v->op, i), "every operand");
    is_token(v, v->op->results, "the result");
}

// send, outfeed: token last, token out. recv, infeed: token in, values and a token out.
static void check_transfer(Verify *v) {
    const HloOp *op = v->op;
    bool out = op->code == HLO_SEND || op->code == HLO_OUTFEED;
    if (!op->noperands || !op->nresults)
        verify_fail(v, "a token is needed on both sides");
    is_token(v, hlo_operand(v->h, op, out ? op->noperands - 1 : 0), "the token operand");
    is_token(v, op->results + op->nresults - 1, "the last result");
}

// --- collectives -----------------------------------------------------------------------------------

static void check_groups(Verify *v) {
    const HloAttr *g = hlo_attr(v->op, AK_REPLICA_GROUPS);
    for (uint32_t i = 0; g && g->kind == HA_INTS2 && i < g->n; i++)
        verify_that(v, g->ints[i] >= -1, "replica_groups holds a negative process id");
    if (hlo_int(v->op, AK_USE_GLOBAL_DEVICE_IDS, 0))
        verify_that(v, hlo_int(v->op, AK_CHANNEL_ID, 0) > 0,
                    "use_global_device_ids needs a positive channel");
}

static void check_all_gather(Verify *v) {
    check_groups(v);
    if (v->op->noperands != v->op->nresults)
        verify_fail(v, "%u results for %u operands", v->op->nresults, v->op->noperands);
    for (uint32_t k = 0; k < v->op->nresults; k++) {
        const HloType *a = verify_in(v, k), *r = verify_out(v, k);
        verify_same_elem(v, "operand and result", a, r);
        int64_t dim = verify_dim_attr(v, AK_ALL_GATHER_DIM, a->rank);
        bool fits = a->rank == r->rank;
        for (int i = 0; fits && i < a->rank; i++) {
            int64_t x = a->dims[i], y = r->dims[i];
            bool known = x != HLO_DYNAMIC && y != HLO_DYNAMIC;
            fits = !known || (i == dim ? (x ? y % x == 0 : y == 0) : x == y);
        }
        if (!fits)
            verify_fail(v, "%s cannot be gathered into %s along dimension %lld",
                        verify_type_text(v, a), verify_type_text(v, r), (long long)dim);
    }
}

static void check_all_reduce(Verify *v) {
    check_groups(v);
    uint32_t n = v->op->nresults;
    if (v->op->noperands < n || v->op->noperands > n + 1)
        verify_fail(v, "%u results for %u operands", n, v->op->noperands);
    for (uint32_t k = 0; k < n; k++) {
        const HloType *a = verify_in(v, k), *elem;
        verify_combiner(v, 0, 1, &a, &elem);
        verify_same_shape(v, "operand and result", a, verify_out(v, k));
        verify_same_elem(v, "computation and result", elem, verify_out(v, k));
    }
}

static void check_reduce_scatter(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0), *elem;
    check_groups(v);
    verify_combiner(v, 0, 1, &a, &elem);
    int64_t dim = verify_dim_attr(v, AK_SCATTER_DIMENSION, a->rank);
    bool fits = a->rank == r->rank;
    for (int i = 0; fits && i < a->rank; i++) {
        int64_t x = a->dims[i], y = r->dims[i];
        bool known = x != HLO_DYNAMIC && y != HLO_DYNAMIC;
        fits = !known || (i == dim ? (y ? x % y == 0 : x == 0) : x == y);
    }
    if (!fits)
        verify_fail(v, "%s cannot be scattered into %s along dimension %lld", verify_type_text(v, a),
                    verify_type_text(v, r), (long long)dim);
    verify_same_elem(v, "computation and result", elem, r);
}

static void check_all_to_all(Verify *v) {
    check_groups(v);
    int64_t count = hlo_int(v->op, AK_SPLIT_COUNT, 0);
    verify_that(v, count > 0, "split_count must be positive");
    if (v->op->noperands != v->op->nresults)
        verify_fail(v, "%u results for %u operands", v->op->nresults, v->op->noperands);
    for (uint32_t k = 0; k < v->op->nresults; k++) {
        const HloType *a = verify_in(v, k), *r = verify_out(v, k);
        verify_same_elem(v, "operand and result", a, r);
        int64_t split = verify_dim_attr(v, AK_SPLIT_DIMENSION, a->rank);
        int64_t concat = verify_dim_attr(v, AK_CONCAT_DIMENSION, a->rank);
        bool fits = a->rank == r->rank;
        for (int i = 0; fits && i < a->rank; i++) {
            __int128 want = a->dims[i];
            if (a->dims[i] == HLO_DYNAMIC || r->dims[i] == HLO_DYNAMIC)
                continue;
            if (i == split)
                fits = want % count == 0, want /= count;
            if (i == concat)
                want *= count;
            fits = fits && want == r->dims[i];
        }
        if (!fits)
            verify_fail(v, "%s does not become %s when split by %lld", verify_type_text(v, a),
                        verify_type_text(v, r), (long long)count);
    }
}

static void check_collective_permute(Verify *v) {
    uint32_t n;
    const int64_t *p = verify_ints(v, AK_SOURCE_TARGET_PAIRS, &n);
    for (uint32_t i = 0; i < n; i++)
        verify_that(v, p[i] >= 0, "source_target_pairs holds a negative process id");
    each_result_like_operand(v);
}

// The first operands have the results' types; a dynamic root may follow.
static void check_collective_broadcast(Verify *v) {
    check_groups(v);
    if (v->op->noperands < v->op->nresults || v->op->noperands > v->op->nresults + 1u)
        verify_fail(v, "%u results for %u operands", v->op->nresults, v->op->noperands);
    for (uint32_t i = 0; i < v->op->nresults; i++)
        verify_same_type(v, "operand and result", verify_in(v, i), verify_out(v, i));
}

// --- linear algebra, transforms, random numbers ----------------------------------------------------

static void check_cholesky(Verify *v) {
    const HloType *a = verify_in(v, 0);
    verify_same_type(v, "C1", a, verify_out(v, 0));
    verify_that(v, a->rank >= 2, "C2: the operand needs two dimensions or more");
    verify_that(v, verify_dim_same(a->dims[a->rank - 2], a->dims[a->rank - 1]),
                "C3: the last two dimensions must be equal");
}

static void check_triangular_solve(Verify *v) {
    const HloType *a = verify_in(v, 0), *b = verify_in(v, 1);
    verify_same_elem(v, "C1", a, b);
    verify_that(v, a->rank == b->rank && a->rank >= 2, "C2: both operands need one rank of 2 or more");
    for (int i = 0; i < a->rank - 2; i++)
        verify_that(v, verify_dim_same(a->dims[i], b->dims[i]), "C3: batch dimensions differ");
    int64_t n = a->dims[a->rank - 1];
    int side = hlo_int(v->op, AK_LEFT_SIDE, 0) ? b->rank - 2 : b->rank - 1;
    verify_that(v, verify_dim_same(n, a->dims[a->rank - 2]) && verify_dim_same(n, b->dims[side]),
                "C3: the matrices do not fit each other");
    verify_same_type(v, "C4", b, verify_out(v, 0));
}

static void check_fft(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    uint32_t n;
    const int64_t *length = verify_ints(v, AK_FFT_LENGTH, &n);
    if (n < 1 || n > 3 || n > a->rank || a->rank != r->rank)
        verify_fail(v, "C1, C3: %u lengths for %s", n, verify_type_text(v, a));
    int64_t type = hlo_int(v->op, AK_FFT_TYPE, -1);
    verify_that(v, dtype_is_complex(a->dtype) == (type != FFT_RFFT),
                "C2: the operand must be complex, or real for RFFT");
    verify_that(v, dtype_is_complex(r->dtype) == (type != FFT_IRFFT),
                "C2: the result must be complex, or real for IRFFT");
    verify_that(v, verify_complex_part(a->dtype) == verify_complex_part(r->dtype),
                "C2: operand and result differ in precision");
    for (int i = 0; i < a->rank; i++) {
        int k = i - (a->rank - (int)n);
        int64_t in = a->dims[i], out = a->dims[i];
        if (k >= 0) {
            bool last = i == a->rank - 1;
            int64_t half = length[k] / 2 + 1;
            in = type == FFT_IRFFT && last ? half : length[k];
            out = type == FFT_RFFT && last ? half : length[k];
        }
        bool empty = a->elems == 0 && !a->dynamic; // zero sizes leave lengths free
        if (!empty && (!verify_dim_same(a->dims[i], in) || !verify_dim_same(r->dims[i], out)))
            verify_fail(v, "C5: dimension %d of %s or %s does not fit fft_length", i,
                        verify_type_text(v, a), verify_type_text(v, r));
    }
}

static void check_rng(Verify *v) {
    const HloType *a = verify_in(v, 0), *shape = verify_in(v, 2), *r = verify_out(v, 0);
    verify_that(v, a->rank == 0 && verify_in(v, 1)->rank == 0, "the bounds must be scalars");
    verify_same_elem(v, "C1", a, verify_in(v, 1));
    verify_same_elem(v, "C1", a, r);
    verify_that(v, shape->rank == 1 && verify_dim_same(shape->dims[0], r->rank),
                "C3: the shape must list one integer per dimension of the result");
}

static void check_rng_bit_generator(Verify *v) {
    verify_same_type(v, "C1", verify_in(v, 0), verify_out(v, 0));
    verify_out(v, 1);
}

// Operand first, then vectors over the feature dimension.
static void check_batch_norm(Verify *v) {
    const HloType *a = verify_in(v, 0);
    int64_t feature = verify_dim_attr(v, AK_FEATURE_INDEX, a->rank);
    verify_same_type(v, "operand and result", a, verify_out(v, 0));
    bool grad = v->op->code == HLO_BATCH_NORM_GRAD;
    for (uint32_t i = 1; i < v->op->noperands + v->op->nresults - 1u; i++) {
        bool is_in = i < v->op->noperands;
        const HloType *t = is_in ? verify_in(v, i) : verify_out(v, i - v->op->noperands + 1);
        if (grad && i == 4) {
            verify_same_type(v, "operand and grad_output", a, t);
            continue;
        }
        verify_same_elem(v, "operand and statistics", a, t);
        if (t->rank != 1 || !verify_dim_same(t->dims[0], a->dims[feature]))
            verify_fail(v, "%s must have one element per feature of %s", verify_type_text(v, t),
                        verify_type_text(v, a));
    }
}

static void check_torch_index_select(Verify *v) {
    const HloType *a = verify_in(v, 0);
    verify_dim_attr(v, AK_DIM, a->rank);
    verify_same_elem(v, "operand and result", a, verify_out(v, 0));
}

static void check_top_k(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0), *i = verify_out(v, 1);
    int64_t k = hlo_int(v->op, AK_K, -1);
    verify_same_elem(v, "operand and values", a, r);
    verify_same_shape(v, "values and indices", r, i);
    verify_that(v, a->rank >= 1 && a->rank == r->rank && k >= 0, "the operand needs a dimension");
    for (int d = 0; d < a->rank; d++)
        verify_that(v, verify_dim_same(r->dims[d], d == a->rank - 1 ? k : a->dims[d]),
                    "the result's last dimension must be k, all others the operand's");
    verify_that(v, a->dims[a->rank - 1] == HLO_DYNAMIC || k <= a->dims[a->rank - 1],
                "k is larger than the last dimension");
}

// --- checks ----------------------------------------------------------------------------------------

static void check_check(Verify *v) {
    const HloType *a = verify_in(v, 0);
    if (v->op->noperands == 2)
        verify_same_type(v, "expected and actual", a, verify_in(v, 1));
    const HloAttr *value = hlo_attr(v->op, AK_VALUE);
    if (value)
        verify_same_type(v, "expected and actual", a, hlo_type(v->h, value->type));
}

bool verify_misc(Verify *v) {
    static void (*const checks[HLO_OPCODE_COUNT])(Verify *) = {
        [HLO_CONSTANT] = check_constant,
        [HLO_TUPLE] = check_tuple,
        [HLO_GET_TUPLE_ELEMENT] = check_get_tuple_element,
        [HLO_OPTIMIZATION_BARRIER] = each_result_like_operand,
        [HLO_INTERPRETER_PROBE] = each_result_like_operand,
        [HLO_SDY_SHARDING_CONSTRAINT] = each_result_like_operand,
        [HLO_SDY_RESHARD] = each_result_like_operand,
        [HLO_SDY_PROPAGATION_BARRIER] = each_result_like_operand,
        [HLO_CROSS_REPLICA_SUM] = each_result_like_operand,
        [HLO_GET_DIMENSION_SIZE] = check_dimension_size,
        [HLO_SET_DIMENSION_SIZE] = check_dimension_size,
        [HLO_PARTITION_ID] = check_id,
        [HLO_REPLICA_ID] = check_id,
        [HLO_AFTER_ALL] = check_tokens,
        [HLO_CREATE_TOKEN] = check_tokens,
        [HLO_SEND] = check_transfer,
        [HLO_RECV] = check_transfer,
        [HLO_INFEED] = check_transfer,
        [HLO_OUTFEED] = check_transfer,
        [HLO_ALL_GATHER] = check_all_gather,
        [HLO_ALL_REDUCE] = check_all_reduce,
        [HLO_COLLECTIVE_REDUCE] = check_all_reduce,
        [HLO_REDUCE_SCATTER] = check_reduce_scatter,
        [HLO_ALL_TO_ALL] = check_all_to_all,
        [HLO_COLLECTIVE_PERMUTE] = check_collective_permute,
        [HLO_COLLECTIVE_BROADCAST] = check_collective_broadcast,
        [HLO_CHOLESKY] = check_cholesky,
        [HLO_TRIANGULAR_SOLVE] = check_triangular_solve,
        [HLO_FFT] = check_fft,
        [HLO_RNG] = check_rng,
        [HLO_RNG_BIT_GENERATOR] = check_rng_bit_generator,
        [HLO_BATCH_NORM_GRAD] = check_batch_norm,
        [HLO_BATCH_NORM_INFERENCE] = check_batch_norm,
        [HLO_BATCH_NORM_TRAINING] = check_batch_norm,
        [HLO_TORCH_INDEX_SELECT] = check_torch_index_select,
        [HLO_CHLO_TOP_K] = check_top_k,
        [HLO_CHECK_EXPECT_EQ] = check_check,
        [HLO_CHECK_EXPECT_EQ_CONST] = check_check,
        [HLO_CHECK_EXPECT_ALMOST_EQ] = check_check,
        [HLO_CHECK_EXPECT_ALMOST_EQ_CONST] = check_check,
        [HLO_CHECK_EXPECT_CLOSE] = check_check,
    };
    if (!checks[v->op->code])
        return false;
    checks[v->op->code](v);
    return true;
}
