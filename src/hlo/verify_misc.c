// SPDX-License-Identifier: Apache-2.0
// verify_misc.c — the rest: constants, tuples, collectives, linear algebra, random numbers, checks.
//
// Sizes that depend on the number of devices are only checked for divisibility: the program does not
// say how many there are.
#include "base/twister.h"
#include "hlo/verify.h"

static bool same_value_type(Verify *v, ValueId a, ValueId b) {
    const HloType *x = verify_value(v, a), *y = verify_value(v, b);
    if (x->kind != HT_TENSOR || y->kind != HT_TENSOR)
        return x == y;
    return verify_type_same(x, y);
}

static void each_result_like_operand(Verify *v) {
    const char *rule = v->op->code == HLO_OPTIMIZATION_BARRIER ? "C1" : NULL;
    if (v->op->noperands != v->op->nresults)
        verify_break(v, rule, "%u results for %u operands", v->op->nresults, v->op->noperands);
    for (uint32_t i = 0; i < v->op->nresults; i++)
        if (!same_value_type(v, hlo_operand(v->h, v->op, i), v->op->results + i))
            verify_break(v, rule, "operand %u is %s, but its result is %s", i,
                         verify_type_text(v, verify_value(v, hlo_operand(v->h, v->op, i))),
                         verify_type_text(v, verify_value(v, v->op->results + i)));
}

static void is_token(Verify *v, const char *rule, ValueId id, const char *what) {
    if (verify_value(v, id)->kind != HT_TOKEN)
        verify_break(v, rule, "%s must be a token, but is %s", what, verify_type_text(v, verify_value(v, id)));
}

// --- values ----------------------------------------------------------------------------------------

static void check_constant(Verify *v) {
    const HloAttr *a = hlo_attr(v->op, AK_VALUE);
    const HloType *value = hlo_type(v->h, a->type);
    const HloType *r = verify_out(v, 0);
    bool stored = verify_is_quantised(r) && !verify_is_quantised(value); // written as integers
    verify_that(v, !stored || (value->dtype == r->dtype && verify_shape_same(value, r)), "C1",
                "the value does not hold the integers that the result is stored in");
    if (!stored)
        verify_exact_type(v, "C1", value, r);
}

static void check_tuple(Verify *v) {
    const HloType *t = verify_value(v, v->op->results);
    if (t->kind != HT_TUPLE || t->nmembers != v->op->noperands)
        verify_break(v, "C1", "%s is no tuple of %u values", verify_type_text(v, t), v->op->noperands);
    for (uint32_t i = 0; i < t->nmembers; i++)
        if (v->h->values.at[hlo_operand(v->h, v->op, i)].type != t->members[i])
            verify_break(v, "C1", "operand %u is not of the tuple's type", i);
}

static void check_get_tuple_element(Verify *v) {
    const HloType *t = verify_value(v, hlo_operand(v->h, v->op, 0));
    int64_t i = hlo_int(v->op, AK_INDEX, -1);
    if (t->kind != HT_TUPLE)
        verify_break(v, "I1", "%s is no tuple", verify_type_text(v, t));
    if (i < 0 || i >= t->nmembers)
        verify_break(v, "C1", "element %lld of %s", (long long)i, verify_type_text(v, t));
    if (t->members[i] != v->h->values.at[v->op->results].type)
        verify_break(v, "C2", "the result is not of the element's type");
}

static void check_dimension_size(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    bool get = v->op->code == HLO_GET_DIMENSION_SIZE;
    verify_dim_attr(v, get ? "C1" : NULL, AK_DIMENSION, a->rank);
    if (get) {
        verify_is_scalar(v, "C1", r, DT_I32, "the result");
        return;
    }
    const HloType *size = verify_in(v, 1);
    verify_that(v, size->rank == 0 && verify_is_index(size), NULL, "the size must be an integer scalar");
    verify_that(v, a->rank == r->rank, NULL, "the result must have the operand's rank");
    verify_same_elem(v, NULL, a, r);
}

static void check_id(Verify *v) { verify_is_scalar(v, NULL, verify_out(v, 0), DT_UI32, "the result"); }

static void check_tokens(Verify *v) {
    for (uint32_t i = 0; i < v->op->noperands; i++)
        is_token(v, "I1", hlo_operand(v->h, v->op, i), "every operand");
    is_token(v, NULL, v->op->results, "the result");
}

// send, outfeed: token last, token out. recv, infeed: token in, values and a token out.
static void check_transfer(Verify *v) {
    const HloOp *op = v->op;
    bool out = op->code == HLO_SEND || op->code == HLO_OUTFEED, feed = op->code == HLO_INFEED;
    verify_that(v, op->noperands, out ? "I2" : "I1", "a token is needed");
    verify_that(v, op->nresults, feed ? "C1" : NULL, "the last result must be a token");
    is_token(v, out ? "I2" : "I1", hlo_operand(v->h, op, out ? op->noperands - 1 : 0), "the token operand");
    is_token(v, feed ? "C3" : NULL, op->results + op->nresults - 1, "the last result");
    for (uint32_t i = 0; out && i + 1 < op->noperands; i++)
        verify_in(v, i);
    for (uint32_t i = 0; !out && i + 1 < op->nresults; i++)
        if (verify_value(v, op->results + i)->kind != HT_TENSOR)
            verify_break(v, feed ? "C2" : NULL, "result %u must be a tensor", i);
    if (feed)
        verify_infeed_layout(v);
    if (op->code != HLO_SEND && op->code != HLO_RECV)
        return;
    // the text's channel handle has numbers of its own: 1 device to device, 2 device to host, 3 host to device
    int64_t type = hlo_int(op, AK_CHANNEL_TYPE, 0), want = !hlo_int(op, AK_IS_HOST_TRANSFER, 0) ? 1 : out ? 2 : 3;
    if (type != want)
        verify_break(v, "C5", "channel_type is %lld where %lld goes with is_host_transfer", (long long)type, (long long)want);
    verify_pairs(v);
}

// --- collectives -----------------------------------------------------------------------------------

static void check_all_gather(Verify *v) {
    verify_groups(v, &(GroupRules){"C2", "C3", "C4", "C5", true});
    if (v->op->noperands != v->op->nresults)
        verify_break(v, "C6", "%u results for %u operands", v->op->nresults, v->op->noperands);
    for (uint32_t k = 0; k < v->op->nresults; k++) {
        const HloType *a = verify_in(v, k), *r = verify_out(v, k);
        int64_t dim = verify_dim_attr(v, "C1", AK_ALL_GATHER_DIM, a->rank);
        verify_exact_elem(v, "C6", a, r);
        bool fits = a->rank == r->rank;
        for (int i = 0; fits && i < a->rank; i++) {
            int64_t x = a->dims[i], y = r->dims[i];
            bool known = x != HLO_DYNAMIC && y != HLO_DYNAMIC;
            fits = !known || (i == dim ? (x ? y % x == 0 : y == 0) : x == y);
            verify_that(v, i != dim || x != 0, "C6", "the gathered dimension of the operand is empty");
        }
        if (!fits)
            verify_break(v, "C6", "%s cannot be gathered into %s along dimension %lld", verify_type_text(v, a),
                         verify_type_text(v, r), (long long)dim);
    }
}

static void check_all_reduce(Verify *v) {
    verify_groups(v, &(GroupRules){"C1", "C2", "C3", "C4", false});
    uint32_t n = v->op->nresults;
    if (!n || v->op->noperands != n)
        verify_break(v, "C6", "%u results for %u operands", n, v->op->noperands);
    for (uint32_t k = 0; k < n; k++) {
        const HloType *a = verify_in(v, k), *elem;
        verify_combiner(v, "C5", 0, 1, &a, &elem);
        verify_same_shape(v, "C6", a, verify_out(v, k));
        verify_same_elem(v, "C7", elem, verify_out(v, k));
    }
}

static void check_scattered(Verify *v, uint32_t k) {
    const HloType *a = verify_in(v, k), *r = verify_out(v, k), *elem;
    verify_combiner(v, "C7", 0, 1, &a, &elem);
    int64_t dim = verify_dim_attr(v, "C2", AK_SCATTER_DIMENSION, a->rank);
    verify_that(v, a->rank == r->rank, "C8", "the result must have the operand's rank");
    for (int i = 0; i < a->rank; i++) {
        int64_t x = a->dims[i], y = r->dims[i];
        if (x == HLO_DYNAMIC || y == HLO_DYNAMIC)
            continue;
        verify_that(v, i == dim || x == y, "C8", "only the scattered dimension may change");
        verify_that(v, i != dim || (x && y && x % y == 0), "C1", "the scattered dimension does not divide");
    }
    verify_same_elem(v, "C9", elem, r);
}

// Of several operands, as all_reduce has them: pass/buckets.c makes those.
static void check_reduce_scatter(Verify *v) {
    verify_groups(v, &(GroupRules){"C3", "C4", "C5", "C6", true});
    if (!v->op->noperands || v->op->noperands != v->op->nresults)
        verify_break(v, "C7", "%u results for %u operands", v->op->nresults, v->op->noperands);
    for (uint32_t k = 0; k < v->op->nresults; k++)
        check_scattered(v, k);
}

static void check_all_to_all(Verify *v) {
    verify_groups(v, &(GroupRules){"C5", "C6", "C7", NULL, true});
    int64_t count = hlo_int(v->op, AK_SPLIT_COUNT, 0);
    verify_that(v, count > 0, "C4", "split_count must be positive");
    const HloAttr *g = hlo_attr(v->op, AK_REPLICA_GROUPS);
    verify_that(v, !g || g->kind != HA_INTS2 || g->cols == count, "C8",
                "the groups must be as large as split_count");
    if (v->op->noperands != v->op->nresults)
        verify_break(v, "C9", "%u results for %u operands", v->op->nresults, v->op->noperands);
    for (uint32_t k = 0; k < v->op->nresults; k++) {
        const HloType *a = verify_in(v, k), *r = verify_out(v, k);
        int64_t split = verify_dim_attr(v, "C1", AK_SPLIT_DIMENSION, a->rank);
        int64_t concat = verify_dim_attr(v, "C3", AK_CONCAT_DIMENSION, a->rank);
        verify_that(v, a->dims[split] == HLO_DYNAMIC || a->dims[split] % count == 0, "C2",
                    "split_count does not divide the split dimension");
        verify_exact_elem(v, "C9", a, r);
        bool fits = a->rank == r->rank;
        for (int i = 0; fits && i < a->rank; i++) {
            __int128 want = a->dims[i];
            if (a->dims[i] == HLO_DYNAMIC || r->dims[i] == HLO_DYNAMIC)
                continue;
            if (i == split)
                want /= count;
            if (i == concat)
                want *= count;
            fits = want == r->dims[i];
        }
        if (!fits)
            verify_break(v, "C9", "%s does not become %s when split by %lld", verify_type_text(v, a), verify_type_text(v, r),
                         (long long)count);
    }
}

static void check_collective_permute(Verify *v) {
    verify_pairs(v);
    verify_exact_type(v, "C5", verify_in(v, 0), verify_out(v, 0));
}

// Data operands, then with a dynamic root one list of roots, as long as there are data operands.
static void check_rooted(Verify *v) {
    bool reduce = v->op->code == HLO_COLLECTIVE_REDUCE, root = hlo_int(v->op, AK_HAS_DYNAMIC_ROOT, 0);
    uint32_t n = v->op->noperands;
    const char *rule = reduce || !root ? "C3" : "C4";
    verify_groups(v, &(GroupRules){"C1", NULL, "C2", "I3", false});
    verify_that(v, n >= 1u + root, rule, root ? "data and a root are needed" : "there must be an operand");
    uint32_t data = n - root;
    if (v->op->nresults != data)
        verify_break(v, reduce ? "C3" : "C5", "%u results for %u operands", v->op->nresults, data);
    if (root) {
        const HloType *t = verify_in(v, n - 1);
        verify_that(v, t->rank == 1 && t->dtype == DT_I32 && verify_dim_same(t->dims[0], data), rule,
                    "the last operand must list one i32 root per operand before it");
    }
    for (uint32_t i = 0; i < data; i++) {
        const HloType *a = verify_in(v, i), *elem;
        if (!reduce) {
            verify_exact_type(v, rule, a, verify_out(v, i));
            continue;
        }
        verify_combiner(v, "C4", 0, 1, &a, &elem);
        verify_same_shape(v, "C3", a, verify_out(v, i));
        verify_same_elem(v, "C4", elem, verify_out(v, i));
    }
}

// --- asynchronous ops ------------------------------------------------------------------------------

static bool may_be_async(int code) {
    switch (code) {
    case HLO_ALL_REDUCE:
    case HLO_ALL_GATHER:
    case HLO_ALL_TO_ALL:
    case HLO_COLLECTIVE_PERMUTE:
    case HLO_REDUCE_SCATTER:
    case HLO_COLLECTIVE_BROADCAST:
    case HLO_SLICE:
    case HLO_DYNAMIC_SLICE:
    case HLO_DYNAMIC_UPDATE_SLICE:
        return true;
    default:
        return false;
    }
}

// Is `future` the future of these values? A future is a type we only carry along: its text tells.
static bool is_future_of(Verify *v, const HloType *future, ValueId first, uint32_t n, const HloOp *list) {
    Buf want = {.arena = v->h->arena};
    buf_puts(&want, "!stablehlo.future<");
    for (uint32_t i = 0; i < n; i++) {
        buf_puts(&want, i ? ", " : "");
        hlo_print_type(v->h, v->h->values.at[list ? hlo_operand(v->h, list, i) : first + i].type, &want);
    }
    buf_puts(&want, ">");
    return future->kind == HT_OTHER && future->text && !strcmp(future->text, buf_cstr(&want));
}

static void check_async_start(Verify *v) {
    const HloRegion *r = hlo_op_region(v->h, v->op, 0);
    const HloOp *ret;
    verify_that(v, r->ops.n == 2, "C1", "the body must hold one operation and a return");
    const HloOp *inner = hlo_at(v->h, r->ops.at[0]);
    verify_that(v, may_be_async(inner->code), "C2", "the body must hold a collective or a slice");
    verify_that(v, r->nargs == v->op->noperands, "C3", "the body takes another number of values than there are operands");
    for (uint32_t i = 0; i < r->nargs; i++)
        verify_that(v, v->h->values.at[r->args + i].type == v->h->values.at[hlo_operand(v->h, v->op, i)].type, "C3",
                    "an argument of the body is not of its operand's type");
    uint32_t n = verify_returns(v, 0, &ret);
    verify_that(v, is_future_of(v, verify_value(v, v->op->results), 0, n, ret), "C4",
                "the result is no future of what the body returns");
}

static void check_named_computation(Verify *v) {
    const HloRegion *r = hlo_op_region(v->h, v->op, 0);
    const HloOp *ret;
    verify_that(v, r->nargs == v->op->noperands, NULL, "the body takes another number of values than there are operands");
    for (uint32_t i = 0; i < r->nargs; i++)
        verify_same_type(v, NULL, verify_value(v, r->args + i), verify_in(v, i));
    verify_that(v, verify_returns(v, 0, &ret) == v->op->nresults, NULL, "the body returns another number of values");
    for (uint32_t i = 0; i < v->op->nresults; i++)
        verify_same_type(v, NULL, verify_value(v, hlo_operand(v->h, ret, i)), verify_out(v, i));
}

static void check_async_done(Verify *v) {
    verify_that(v, is_future_of(v, verify_value(v, hlo_operand(v->h, v->op, 0)), v->op->results, v->op->nresults, NULL), "C1",
                "the operand is no future of the results");
}

// --- linear algebra, transforms, random numbers ----------------------------------------------------

static void is_float_or_complex(Verify *v, uint32_t i) {
    int e = verify_elem(verify_in(v, i));
    verify_that(v, dtype_is_float(e) || dtype_is_complex(e), verify_input_name(i), "elements must be floats or complex");
}

static void check_cholesky(Verify *v) {
    const HloType *a = verify_in(v, 0);
    is_float_or_complex(v, 0);
    verify_same_type(v, "C1", a, verify_out(v, 0));
    verify_that(v, a->rank >= 2, "C2", "the operand needs two dimensions or more");
    verify_that(v, verify_dim_same(a->dims[a->rank - 2], a->dims[a->rank - 1]), "C3", "the last two dimensions must be equal");
}

static void check_triangular_solve(Verify *v) {
    const HloType *a = verify_in(v, 0), *b = verify_in(v, 1);
    is_float_or_complex(v, 0);
    verify_same_elem(v, "C1", a, b);
    verify_that(v, a->rank == b->rank && a->rank >= 2, "C2", "both operands need one rank of 2 or more");
    for (int i = 0; i < a->rank - 2; i++)
        verify_that(v, verify_dim_same(a->dims[i], b->dims[i]), "C3", "batch dimensions differ");
    int64_t n = a->dims[a->rank - 1];
    int side = hlo_int(v->op, AK_LEFT_SIDE, 0) ? b->rank - 2 : b->rank - 1;
    verify_that(v, verify_dim_same(n, a->dims[a->rank - 2]) && verify_dim_same(n, b->dims[side]), "C3",
                "the matrices do not fit each other");
    verify_same_type(v, "C4", b, verify_out(v, 0));
    verify_that(v, hlo_int(v->op, AK_TRANSPOSE_A, 0) != TRANSPOSE_INVALID, "I6", "transpose_a must not be invalid");
}

static void check_fft(Verify *v) {
    const HloType *a = verify_in(v, 0), *r = verify_out(v, 0);
    uint32_t n;
    const int64_t *length = verify_ints(v, AK_FFT_LENGTH, &n);
    verify_that(v, n >= 1 && n <= 3, "C3", "fft_length needs one to three entries");
    verify_that(v, n <= a->rank, "C1", "fft_length has more entries than the operand has dimensions");
    verify_that(v, a->rank == r->rank, "C5", "the result must have the operand's rank");
    int64_t type = hlo_int(v->op, AK_FFT_TYPE, -1);
    verify_that(v, dtype_is_complex(a->dtype) == (type != FFT_RFFT), "C2", "the operand must be complex, or real for RFFT");
    verify_that(v, dtype_is_complex(r->dtype) == (type != FFT_IRFFT), "C2", "the result must be complex, or real for IRFFT");
    int part = verify_complex_part(a->dtype);
    verify_that(v, part == verify_complex_part(r->dtype) && (part == DT_F32 || part == DT_F64), "C2",
                "operand and result differ in precision, or are neither f32 nor f64");
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
        if (!empty && !verify_dim_same(a->dims[i], in))
            verify_break(v, type == FFT_IRFFT ? "C5" : "C4", "dimension %d of %s does not fit fft_length", i,
                         verify_type_text(v, a));
        if (!empty && !verify_dim_same(r->dims[i], out))
            verify_break(v, type == FFT_IRFFT ? "C4" : "C5", "dimension %d of %s does not fit fft_length", i,
                         verify_type_text(v, r));
    }
}

static void check_rng(Verify *v) {
    const HloType *a = verify_in(v, 0), *shape = verify_in(v, 2), *r = verify_out(v, 0);
    for (uint32_t i = 0; i < 2; i++) {
        const HloType *t = verify_in(v, i);
        verify_that(v, t->rank == 0 && !dtype_is_complex(t->dtype) && !verify_is_quantised(t), verify_input_name(i),
                    "the bounds must be real scalars");
    }
    verify_same_elem(v, "C1", a, verify_in(v, 1));
    verify_same_elem(v, "C1", a, r);
    verify_that(v, hlo_int(v->op, AK_RNG_DISTRIBUTION, 0) != RNGDIST_NORMAL || dtype_is_float(a->dtype), "C2",
                "a normal distribution is one of floats");
    verify_that(v, shape->rank == 1 && verify_is_index(shape), "I3", "the shape must list integers");
    verify_that(v, verify_dim_same(shape->dims[0], r->rank), "C3", "the shape must list one integer per dimension of the result");
    int64_t dims[OTRN_MAX_RANK];
    uint32_t n;
    for (uint32_t i = 0; verify_known_ints(v, 2, dims, &n) && i < n; i++)
        verify_that(v, verify_dim_same(r->dims[i], dims[i]), "C3", "the result has another shape than is asked for");
}

static void check_rng_bit_generator(Verify *v) {
    const HloType *state = verify_in(v, 0);
    verify_out(v, 1);
    verify_same_type(v, "C1", state, verify_out(v, 0));
    if (state->rank != 1 || !dtype_is_int(state->dtype))
        return; // old serialised programs have such; they are read and written, and refused when they are to run
    int64_t n = state->dims[0], algorithm = hlo_int(v->op, AK_RNG_ALGORITHM, RNGALG_DEFAULT);
    n *= n == HLO_DYNAMIC ? 1 : (int64_t)dtype_bytes(state->dtype); // in words of 8 bytes, as the specification has it
    bool fits = n == HLO_DYNAMIC || algorithm == RNGALG_DEFAULT || (algorithm == RNGALG_TWISTER ? n == 4 * TWISTER_STATE : n == 16) ||
                (algorithm == RNGALG_PHILOX && n == 24);
    verify_that(v, fits, "C2", "the state has the wrong size for the algorithm");
}

static void check_draw(Verify *v) {
    const HloType *state = verify_in(v, 0), *r = verify_out(v, 0);
    verify_that(v, state->elems * (int64_t)dtype_bytes(state->dtype) == 16, NULL, "the state has 16 bytes");
    verify_that(v, r->dtype == DT_UI32 || r->dtype == DT_I1, NULL, "draws are words or flags");
}

// Operand first, then vectors over the feature dimension.
static void check_batch_norm(Verify *v) {
    const HloType *a = verify_in(v, 0);
    bool grad = v->op->code == HLO_BATCH_NORM_GRAD;
    verify_that(v, dtype_is_float(verify_elem(a)), "I1", "elements must be floats");
    int64_t feature = verify_dim_attr(v, "C1", AK_FEATURE_INDEX, a->rank);
    verify_same_elem(v, "C2", a, verify_out(v, 0));
    verify_same_shape(v, grad ? "C3" : "C7", a, verify_out(v, 0));
    static const char *const sizes[] = {NULL, "C3", "C4", "C5", "C6"};
    for (uint32_t i = 1; i < v->op->noperands + v->op->nresults - 1u; i++) {
        bool is_in = i < v->op->noperands;
        const HloType *t = is_in ? verify_in(v, i) : verify_out(v, i - v->op->noperands + 1);
        verify_same_elem(v, "C2", a, t);
        if (grad && i == 4) {
            verify_same_shape(v, "C3", a, t);
            continue;
        }
        if (t->rank != 1)
            verify_break(v, is_in ? verify_input_name(i) : "C4", "%s must have one dimension", verify_type_text(v, t));
        if (!verify_dim_same(t->dims[0], a->dims[feature]))
            verify_break(v, grad ? (i == 1 ? "C5" : "C4") : sizes[i < 4 ? i : 4], "%s must have one element per feature of %s",
                         verify_type_text(v, t), verify_type_text(v, a));
    }
}

// The result is the operand's dimensions with `dim` replaced by the index's behind the batch ones. An older op: no numbers.
static void check_torch_index_select(Verify *v) {
    const HloType *a = verify_in(v, 0), *index = verify_in(v, 1), *r = verify_out(v, 0);
    int64_t dim = verify_dim_attr(v, NULL, AK_DIM, a->rank), batch = hlo_int(v->op, AK_BATCH_DIMS, 0);
    verify_exact_elem(v, NULL, a, r);
    verify_that(v, verify_is_index(index), NULL, "indices must be integers");
    verify_that(v, batch >= 0 && batch <= dim && batch <= index->rank, NULL, "batch_dims must not be above dim or the index's rank");
    verify_that(v, r->rank == a->rank - 1 + index->rank - batch, NULL, "the result has the wrong rank");
    int at = 0;
    bool fits = true;
    for (int i = 0; i < a->rank; i++) {
        if (i != dim) {
            fits = fits && verify_dim_same(r->dims[at++], a->dims[i]);
            fits = fits && (i >= batch || verify_dim_same(a->dims[i], index->dims[i]));
            continue;
        }
        for (int k = (int)batch; k < index->rank; k++)
            fits = fits && verify_dim_same(r->dims[at++], index->dims[k]);
    }
    verify_that(v, fits, NULL, "the result does not fit operand and index");
}

// --- checks ----------------------------------------------------------------------------------------

static void check_check(Verify *v) {
    const HloType *a = verify_in(v, 0);
    if (v->op->noperands == 2)
        verify_same_type(v, NULL, a, verify_in(v, 1));
    const HloAttr *value = hlo_attr(v->op, AK_VALUE);
    if (value)
        verify_same_type(v, NULL, a, hlo_type(v->h, value->type));
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
        [HLO_SDY_NAMED_COMPUTATION] = check_named_computation,
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
        [HLO_COLLECTIVE_REDUCE] = check_rooted,
        [HLO_REDUCE_SCATTER] = check_reduce_scatter,
        [HLO_ALL_TO_ALL] = check_all_to_all,
        [HLO_COLLECTIVE_PERMUTE] = check_collective_permute,
        [HLO_COLLECTIVE_BROADCAST] = check_rooted,
        [HLO_ASYNC_START] = check_async_start,
        [HLO_ASYNC_DONE] = check_async_done,
        [HLO_CUSTOM_CALL] = verify_custom_call,
        [HLO_CHOLESKY] = check_cholesky,
        [HLO_TRIANGULAR_SOLVE] = check_triangular_solve,
        [HLO_FFT] = check_fft,
        [HLO_DRAW] = check_draw,
        [HLO_RNG] = check_rng,
        [HLO_RNG_BIT_GENERATOR] = check_rng_bit_generator,
        [HLO_BATCH_NORM_GRAD] = check_batch_norm,
        [HLO_BATCH_NORM_INFERENCE] = check_batch_norm,
        [HLO_BATCH_NORM_TRAINING] = check_batch_norm,
        [HLO_TORCH_INDEX_SELECT] = check_torch_index_select,
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
