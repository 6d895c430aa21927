// SPDX-License-Identifier: Apache-2.0
// gp_kern_test.c — GpSimd kernels with regions and the larger ones: reductions, windows, sort,
// products, the rest. Against the plain evaluator (sums: against naive ones in double) and against
// themselves, as gp_case.h says. Usage: gp_kern_test [seed]
#include "gp_case.h"

// --- reductions --------------------------------------------------------------------------------

// Sums of floats against a naive sum in double: what is allowed is relative to the sum of
// magnitudes, since the evaluator's own sequential rounding drifts.
static void judge_sum(Suite *s, const Case *c, const char *name, const CaseRun *r) {
    const KTensor *in = &c->k.in[0], *out = &c->k.out[0];
    const HloAttr *dims = kern_attr(&c->k, AK_DIMENSIONS);
    double *sum = arena_array(&s->arena, (size_t)out->elems + 1, sizeof *sum);
    double *size = arena_array(&s->arena, (size_t)out->elems + 1, sizeof *size);
    for (int64_t e = 0; e < in->elems; e++) {
        int64_t rest = e, at = 0, stride = 1;
        for (int d = in->rank - 1; d >= 0; d--) {
            bool gone = false;
            for (uint32_t i = 0; i < dims->n; i++)
                gone |= dims->ints[i] == d;
            at += gone ? 0 : rest % in->dims[d] * stride;
            stride *= gone ? 1 : in->dims[d];
            rest /= in->dims[d];
        }
        double v =
            dtype_to_f64(in->dtype, (char *)c->data[0] + e * (int64_t)dtype_bytes(in->dtype));
        sum[at] += v, size[at] += fabs(v);
    }
    double unit = in->dtype == DT_F64 ? 0x1p-53 : in->dtype == DT_F32 ? 0x1p-24 : 0;
    double last = in->dtype == DT_BF16 ? 0x1p-8 : in->dtype == DT_F16 ? 0x1p-11 : unit;
    for (int64_t i = 0; i < out->elems; i++) {
        double got =
            dtype_to_f64(out->dtype, (char *)r->out[0] + i * (int64_t)dtype_bytes(out->dtype));
        if (fabs(got - sum[i]) > (unit ? 16 * unit : 0x1p-20) * size[i] + last * fabs(sum[i])) {
            case_fail(s, name, "element %lld: %.9g, in double %.9g", (long long)i, got, sum[i]);
            return;
        }
    }
}

static void reduce_case(Suite *s, int dtype, HloOpcode op, int rank, const int64_t *dims, int nred,
                        const int64_t *red, bool two_steps) {
    int64_t out[8];
    int n = 0;
    for (int d = 0; d < rank; d++) {
        bool gone = false;
        for (int i = 0; i < nred; i++)
            gone |= red[i] == d;
        if (!gone)
            out[n++] = dims[d];
    }
    Case *c = case_make(s, HLO_REDUCE);
    add_in(s, c, dtype, rank, dims, false);
    add_scalar(s, c, dtype, op == HLO_MULTIPLY || op == HLO_MINIMUM || op == HLO_AND);
    add_out(c, dtype, n, out);
    set_ints(c, AK_DIMENSIONS, nred, red);
    if (two_steps) { // the same through the general way: acc op x op x op x differs, so add twice a
                     // part
        uint8_t types[4] = {(uint8_t)dtype, (uint8_t)dtype, (uint8_t)dtype, (uint8_t)dtype};
        KStep steps[2] = {{.op = (uint16_t)op, .dst = 2, .src = {0, 1}},
                          {.op = HLO_MAXIMUM, .dst = 3, .src = {2, 2}}};
        add_prog(c, 4, 2, types, 2, steps, 1, (const uint16_t[]){3});
    } else {
        add_body(c, op, dtype, dtype, 0);
    }
    char name[128];
    snprintf(name, sizeof name, "reduce %s %s rank %d, %d dims, %lld elements%s",
             hlo_op_rows[op].name, dtype_row(dtype)->name, rank, nred, (long long)c->in[0].elems,
             two_steps ? ", program" : "");
    c->rel = dtype == DT_F32                       ? 2e-5
             : dtype == DT_BF16 || dtype == DT_F16 ? 0.06
             : dtype == DT_F64                     ? 1e-12
                                                   : 0;
    if (op == HLO_ADD && dtype_is_float(dtype) && !two_steps)
        c->judge = judge_sum;
    need(s, c, name);
}

static void argmax_case(Suite *s, int64_t rows, int64_t cols, int64_t axis) {
    Case *c = case_make(s, HLO_REDUCE);
    add_in(s, c, DT_F32, 2, DIMS(rows, cols), false);
    add_in(s, c, DT_I32, 2, DIMS(rows, cols), false);
    for (int64_t i = 0; i < rows * cols; i++)
        ((int32_t *)c->data[1])[i] = (int32_t)(axis ? i % cols : i / cols);
    add_float(s, c, DT_F32, -INFINITY);
    add_scalar(s, c, DT_I32, 0);
    add_out(c, DT_F32, 1, DIMS(axis ? rows : cols));
    add_out(c, DT_I32, 1, DIMS(axis ? rows : cols));
    set_ints(c, AK_DIMENSIONS, 1, &axis);
    // a > b, or equal with the lower index
    uint8_t types[] = {DT_F32, DT_I32, DT_F32, DT_I32, DT_I1, DT_I1,
                       DT_I1,  DT_I1,  DT_I1,  DT_F32, DT_I32};
    KStep steps[] = {{.op = HLO_COMPARE, .dst = 4, .src = {0, 2}, .attr = {CMP_GT, CMPT_FLOAT}},
                     {.op = HLO_COMPARE, .dst = 5, .src = {0, 2}, .attr = {CMP_EQ, CMPT_FLOAT}},
                     {.op = HLO_COMPARE, .dst = 6, .src = {1, 3}, .attr = {CMP_LT, CMPT_SIGNED}},
                     {.op = HLO_AND, .dst = 7, .src = {5, 6}},
                     {.op = HLO_OR, .dst = 8, .src = {4, 7}},
                     {.op = HLO_SELECT, .dst = 9, .src = {8, 0, 2}},
                     {.op = HLO_SELECT, .dst = 10, .src = {8, 1, 3}}};
    add_prog(c, 11, 4, types, 7, steps, 2, (const uint16_t[]){9, 10});
    need(s, c, "argmax");
}

static void test_reduce(Suite *s) {
    int before = s->failures;
    static const HloOpcode ops[] = {HLO_ADD,     HLO_MULTIPLY, HLO_MAXIMUM,
                                    HLO_MINIMUM, HLO_AND,      HLO_OR};
    for (int i = 0; i < NNUMBERS; i++)
        for (size_t o = 0; o < (dtype_is_int(numbers[i]) ? 6u : 4u); o++) {
            reduce_case(s, numbers[i], ops[o], 2, DIMS(13, 45), 1, DIMS(1), false);
            reduce_case(s, numbers[i], ops[o], 2, DIMS(45, 13), 1, DIMS(0), false);
            reduce_case(s, numbers[i], ops[o], 3, DIMS(5, 6, 7), 2, DIMS(0, 2), o & 1);
        }
    for (int i = 0; i < 40; i++) {
        int64_t dims[8], axes[8];
        int rank = random_shape(s, 5, 6, dims);
        shuffle(s, axes, rank);
        reduce_case(s, i & 1 ? DT_F32 : DT_I32, HLO_ADD, rank, dims, (int)rnd_in(s, 0, rank), axes,
                    i % 3 == 0);
    }
    reduce_case(s, DT_F32, HLO_ADD, 1, DIMS(300001), 1, DIMS(0), false);
    reduce_case(s, DT_BF16, HLO_ADD, 2, DIMS(2, 70001), 1, DIMS(1), false);
    reduce_case(s, DT_F32, HLO_ADD, 2, DIMS(20000, 10), 1, DIMS(0), false);
    reduce_case(s, DT_F32, HLO_ADD, 2, DIMS(700, 768), 1, DIMS(0), false);
    reduce_case(s, DT_BF16, HLO_MAXIMUM, 3, DIMS(4, 300, 130), 1, DIMS(1), false);
    reduce_case(s, DT_I1, HLO_AND, 2, DIMS(40, 50), 1, DIMS(1), false);
    reduce_case(s, DT_I1, HLO_OR, 2, DIMS(40, 50), 2, DIMS(0, 1), false);
    argmax_case(s, 30, 40, 1);
    argmax_case(s, 30, 700, 0);
    argmax_case(s, 2, 9000, 1);
    report(s, "reduce", before);
}

// --- windows -----------------------------------------------------------------------------------

static void window_attrs(Case *c, int rank, const int64_t *size, const int64_t *step,
                         const int64_t *pad) {
    set_ints(c, AK_WINDOW_DIMENSIONS, rank, size);
    set_ints(c, AK_WINDOW_STRIDES, rank, step);
    set_pairs(c, AK_PADDING, rank, pad);
}

static void window_case(Suite *s, int dtype, HloOpcode op, int64_t init) {
    int64_t dims[3], size[3], step[3], base[3], gap[3], pad[6], out[3];
    int rank = (int)rnd_in(s, 1, 3);
    for (int d = 0; d < rank; d++) {
        dims[d] = rnd_in(s, 1, 9), size[d] = rnd_in(s, 1, 3), step[d] = rnd_in(s, 1, 2);
        base[d] = rnd_in(s, 1, 2), gap[d] = rnd_in(s, 1, 2);
        pad[2 * d] = rnd_in(s, -1, 3), pad[2 * d + 1] = rnd_in(s, -1, 3);
        int64_t whole = (dims[d] - 1) * base[d] + 1 + pad[2 * d] + pad[2 * d + 1],
                span = (size[d] - 1) * gap[d] + 1;
        out[d] = whole < span ? 0 : (whole - span) / step[d] + 1;
    }
    Case *c = case_make(s, HLO_REDUCE_WINDOW);
    add_in(s, c, dtype, rank, dims, false);
    add_scalar(s, c, dtype, init);
    add_out(c, dtype, rank, out);
    window_attrs(c, rank, size, step, pad);
    set_ints(c, AK_BASE_DILATIONS, rank, base);
    set_ints(c, AK_WINDOW_DILATIONS, rank, gap);
    add_body(c, op, dtype, dtype, 0);
    need(s, c, "reduce_window");
}

static void scan_case(Suite *s, int dtype, HloOpcode op, double init, int64_t n, int64_t inner,
                      bool back) {
    Case *c = case_make(s, HLO_REDUCE_WINDOW);
    add_in(s, c, dtype, 3, DIMS(2, n, inner), false);
    add_in(s, c, dtype, 0, NULL, false);
    if (dtype_is_float(dtype))
        dtype_from_f64(dtype, c->data[1], init);
    else
        dtype_from_i64(dtype, c->data[1], (int64_t)init);
    add_out(c, dtype, 3, DIMS(2, n, inner));
    window_attrs(c, 3, DIMS(1, n, 1), DIMS(1, 1, 1),
                 back ? DIMS(0, 0, 0, n - 1, 0, 0) : DIMS(0, 0, n - 1, 0, 0, 0));
    add_body(c, op, dtype, dtype, 0);
    c->rel = dtype == DT_F32 ? 1e-4 : dtype == DT_BF16 ? 0.1 : 0;
    need(s, c, "cumulative");
}

static void pool_grad_case(Suite *s, int dtype, int dir) {
    Case *c = case_make(s, HLO_SELECT_AND_SCATTER);
    add_in(s, c, dtype, 4, DIMS(3, 7, 8, 2), false);
    add_in(s, c, dtype, 4, DIMS(3, 4, 4, 2), false);
    add_scalar(s, c, dtype, 0);
    add_out(c, dtype, 4, DIMS(3, 7, 8, 2));
    window_attrs(c, 4, DIMS(1, 3, 3, 1), DIMS(1, 2, 2, 1), DIMS(0, 0, 1, 1, 1, 0, 0, 0));
    add_body(c, HLO_COMPARE, dtype, DT_I1, dir);
    add_body(c, HLO_ADD, dtype, dtype, 0);
    need(s, c, "select_and_scatter");
}

static void test_windows(Suite *s) {
    int before = s->failures;
    for (int i = 0; i < 60; i++)
        window_case(s, numbers[rnd(s) % (size_t)NNUMBERS], i % 2 ? HLO_ADD : HLO_MAXIMUM,
                    rnd_in(s, -1, 1));
    for (int b = 0; b < 2; b++) {
        scan_case(s, DT_F32, HLO_ADD, 0, 300, 1, b);
        scan_case(s, DT_I32, HLO_ADD, 0, 40, 9, b);
        scan_case(s, DT_F32, HLO_MAXIMUM, -INFINITY, 50, 300, b);
        scan_case(s, DT_BF16, HLO_ADD, 0, 30, 3, b);
        scan_case(s, DT_I32, HLO_ADD, 1, 20, 3, b); // not an identity: padding counts
    }
    for (int i = 0; i < 8; i++)
        pool_grad_case(s, i % 2 ? DT_F32 : DT_I32, i % 4 < 2 ? CMP_GE : CMP_GT);
    report(s, "windows", before);
}

// --- sort --------------------------------------------------------------------------------------

static void sort_case(Suite *s, int dtype, int dir, int type, int64_t n, int64_t inner,
                      bool lexicographic) {
    Case *c = case_make(s, HLO_SORT);
    for (int i = 0; i < 2; i++) {
        add_in(s, c, i ? DT_I32 : dtype, 3, DIMS(2, n, inner), false);
        add_out(c, i ? DT_I32 : dtype, 3, DIMS(2, n, inner));
    }
    set_int(c, AK_DIMENSION, 1);
    set_bool(c, AK_IS_STABLE, true);
    uint8_t types[] = {(uint8_t)dtype, (uint8_t)dtype, DT_I32, DT_I32, DT_I1,
                       DT_I1,          DT_I1,          DT_I1,  DT_I1};
    KStep steps[] = {
        {.op = HLO_COMPARE, .dst = 4, .src = {0, 1}, .attr = {(int16_t)dir, (int16_t)type}},
        {.op = HLO_COMPARE, .dst = 5, .src = {0, 1}, .attr = {CMP_EQ, (int16_t)type}},
        {.op = HLO_COMPARE, .dst = 6, .src = {2, 3}, .attr = {CMP_LT, CMPT_SIGNED}},
        {.op = HLO_AND, .dst = 7, .src = {5, 6}},
        {.op = HLO_OR, .dst = 8, .src = {4, 7}}};
    add_prog(c, lexicographic ? 9 : 5, 4, types, lexicographic ? 5 : 1, steps, 1,
             lexicographic ? (const uint16_t[]){8} : (const uint16_t[]){4});
    c->exact = true;
    need(s, c, "sort");
}

static void test_sort(Suite *s) {
    int before = s->failures;
    for (int i = 0; i < NNUMBERS; i++) {
        sort_case(s, numbers[i], CMP_LT, CMPT_NOTYPE, 37, 3, false);
        sort_case(s, numbers[i], CMP_GT, CMPT_NOTYPE, 100, 1, true);
    }
    sort_case(s, DT_F32, CMP_LT, CMPT_TOTALORDER, 1000, 2, false);
    sort_case(s, DT_F32, CMP_GT, CMPT_TOTALORDER, 1, 5, false);
    for (int largest = 0; largest < 2; largest++) {
        Case *c = case_make(s, HLO_CHLO_TOP_K);
        add_in(s, c, DT_F32, 2, DIMS(5, 60), false);
        add_out(c, DT_F32, 2, DIMS(5, 7));
        add_out(c, DT_I32, 2, DIMS(5, 7));
        set_int(c, AK_K, 7);
        set_bool(c, AK_LARGEST, largest);
        need(s, c, "top_k");
    }
    report(s, "sort and top_k", before);
}

// --- products ----------------------------------------------------------------------------------

static void dot_case(Suite *s, int a, int b, int out) {
    Case *c = case_make(s, HLO_DOT_GENERAL);
    add_in(s, c, a, 4, DIMS(3, 4, 5, 2), false);
    add_in(s, c, b, 3, DIMS(5, 7, 3), false);
    add_out(c, out, 4, DIMS(3, 4, 2, 7));
    set_ints(c, AK_LHS_BATCHING_DIMENSIONS, 1, DIMS(0));
    set_ints(c, AK_RHS_BATCHING_DIMENSIONS, 1, DIMS(2));
    set_ints(c, AK_LHS_CONTRACTING_DIMENSIONS, 1, DIMS(2));
    set_ints(c, AK_RHS_CONTRACTING_DIMENSIONS, 1, DIMS(0));
    c->rel = dtype_is_int(out) ? 0 : 1e-4;
    need(s, c, "dot_general");
}

static void conv_case(Suite *s, int dtype, int groups, bool by_batch) {
    int64_t n = by_batch ? 4 : 2, features = 4;
    int64_t kernel_in = by_batch ? features : features / groups;
    Case *c = case_make(s, HLO_CONVOLUTION);
    // input [space, batch, feature, space], kernel [out, space, in, space], output [feature, space,
    // space, batch]
    int64_t step[2] = {rnd_in(s, 1, 2), 1}, in_gap[2] = {rnd_in(s, 1, 2), 1},
            k_gap[2] = {1, rnd_in(s, 1, 2)};
    int64_t pad[4] = {rnd_in(s, -1, 2), 1, 0, rnd_in(s, 0, 2)}, dims[2] = {6, 5},
            kernel[2] = {3, 2}, out[2];
    for (int d = 0; d < 2; d++) {
        int64_t whole = (dims[d] - 1) * in_gap[d] + 1 + pad[2 * d] + pad[2 * d + 1];
        int64_t span = (kernel[d] - 1) * k_gap[d] + 1;
        out[d] = whole < span ? 0 : (whole - span) / step[d] + 1;
    }
    add_in(s, c, dtype, 4, DIMS(dims[0], n, features, dims[1]), false);
    add_in(s, c, dtype, 4, DIMS(6, kernel[0], kernel_in, kernel[1]), false);
    add_out(c, dtype, 4, DIMS(6, out[0], out[1], by_batch ? n / groups : n));
    set_int(c, AK_BATCH_GROUP_COUNT, by_batch ? groups : 1);
    set_int(c, AK_FEATURE_GROUP_COUNT, by_batch ? 1 : groups);
    set_int(c, AK_INPUT_BATCH_DIMENSION, 1);
    set_int(c, AK_INPUT_FEATURE_DIMENSION, 2);
    set_ints(c, AK_INPUT_SPATIAL_DIMENSIONS, 2, DIMS(0, 3));
    set_int(c, AK_KERNEL_INPUT_FEATURE_DIMENSION, 2);
    set_int(c, AK_KERNEL_OUTPUT_FEATURE_DIMENSION, 0);
    set_ints(c, AK_KERNEL_SPATIAL_DIMENSIONS, 2, DIMS(1, 3));
    set_int(c, AK_OUTPUT_BATCH_DIMENSION, 3);
    set_int(c, AK_OUTPUT_FEATURE_DIMENSION, 0);
    set_ints(c, AK_OUTPUT_SPATIAL_DIMENSIONS, 2, DIMS(1, 2));
    set_ints(c, AK_WINDOW_STRIDES, 2, step);
    set_ints(c, AK_LHS_DILATION, 2, in_gap);
    set_ints(c, AK_RHS_DILATION, 2, k_gap);
    set_ints(c, AK_WINDOW_REVERSAL, 2, DIMS(rnd_in(s, 0, 1), 1));
    set_pairs(c, AK_PADDING, 2, pad);
    c->rel = dtype_is_int(dtype) ? 0 : dtype == DT_BF16 ? 0.02 : 1e-5;
    need(s, c, "convolution");
}

static void test_products(Suite *s) {
    int before = s->failures;
    static const uint8_t types[][3] = {
        {DT_I32, DT_I32, DT_I32}, {DT_I8, DT_I8, DT_I32},   {DT_UI8, DT_UI8, DT_UI8},
        {DT_F64, DT_F64, DT_F64}, {DT_C64, DT_C64, DT_C64}, {DT_C128, DT_C128, DT_C128},
        {DT_F32, DT_F32, DT_F32}, {DT_I64, DT_I64, DT_I64}, {DT_I16, DT_I16, DT_I16}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        dot_case(s, types[i][0], types[i][1], types[i][2]);
    static const uint8_t conv_types[] = {DT_F32, DT_F64, DT_I32, DT_C64, DT_BF16};
    for (int r = 0; r < 15; r++)
        conv_case(s, conv_types[r % 5], r % 3 ? 2 : 1, r % 3 == 2);
    report(s, "dot_general and convolution", before);
}

// --- the rest ----------------------------------------------------------------------------------

static void rng_case(Suite *s, int dtype, int alg, int64_t state, int rank, const int64_t *dims) {
    Case *c = case_make(s, HLO_RNG_BIT_GENERATOR);
    add_in(s, c, DT_UI64, 1, DIMS(state), false);
    for (int64_t i = 0; i < state; i++)
        ((uint64_t *)c->data[0])[i] = rnd(s);
    ((uint64_t *)c->data[0])[1] = UINT64_MAX - 5; // the counter carries on the way
    add_out(c, DT_UI64, 1, DIMS(state));
    add_out(c, dtype, rank, dims);
    set_enum(c, AK_RNG_ALGORITHM, alg);
    c->exact = true;
    need(s, c, "rng_bit_generator");
}

static void norm_case(Suite *s, HloOpcode op, int dtype) {
    Case *c = case_make(s, op);
    int64_t dims[3] = {4, 5, 6};
    add_in(s, c, dtype, 3, dims, false);
    for (int i = 1; i < (op == HLO_BATCH_NORM_TRAINING ? 3
                         : op == HLO_BATCH_NORM_GRAD   ? 4
                                                       : 5);
         i++) {
        add_in(s, c, dtype, 1, DIMS(5), false);
        for (int e = 0; e < 5; e++) // variances are not negative
            dtype_from_f64(dtype, (char *)c->data[i] + (size_t)e * dtype_bytes(dtype),
                           0.5 + rnd_unit(s));
    }
    if (op == HLO_BATCH_NORM_GRAD)
        add_in(s, c, dtype, 3, dims, false);
    add_out(c, dtype, 3, dims);
    for (int i = 1; i < hlo_op_rows[op].results; i++)
        add_out(c, dtype, 1, DIMS(5));
    *slot(c, AK_EPSILON) = (HloAttr){.kind = HA_FLOAT, .f = (double)1e-3f};
    set_int(c, AK_FEATURE_INDEX, 1);
    c->rel = dtype == DT_F32 ? 2e-5 : 1e-10;
    need(s, c, hlo_op_rows[op].name);
}

static void linalg_case(Suite *s, int dtype, bool left, bool lower, int transpose, bool unit) {
    int64_t n = 6;
    Case *c = case_make(s, HLO_TRIANGULAR_SOLVE);
    add_in(s, c, dtype, 3, DIMS(3, n, n), false);
    add_in(s, c, dtype, 3, left ? DIMS(3, n, 4) : DIMS(3, 4, n), false);
    size_t bytes = dtype_bytes(dtype);
    for (int64_t i = 0; i < 3 * n; i++) { // diagonals away from zero
        double v = 8 + rnd_unit(s);
        char *at = (char *)c->data[0] + (size_t)((i / n * n + i % n) * n + i % n) * bytes;
        dtype_from_f64(dtype == DT_C64 ? DT_F32 : dtype == DT_C128 ? DT_F64 : dtype, at, v);
    }
    add_out(c, dtype, 3, left ? DIMS(3, n, 4) : DIMS(3, 4, n));
    set_bool(c, AK_LEFT_SIDE, left);
    set_bool(c, AK_LOWER, lower);
    set_enum(c, AK_TRANSPOSE_A, transpose);
    set_bool(c, AK_UNIT_DIAGONAL, unit);
    c->rel = dtype == DT_F32 || dtype == DT_C64 ? (unit ? 1e-2 : 1e-4) : 1e-8;
    need(s, c, "triangular_solve");
}

static void cholesky_case(Suite *s, int dtype, bool lower) {
    enum { N = 5 };
    Case *c = case_make(s, HLO_CHOLESKY);
    add_in(s, c, dtype, 3, DIMS(2, N, N), false);
    for (int m = 0; m < 2; m++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j <= i; j++) { // symmetric, strong diagonal
                double v = i == j ? 12 + rnd_unit(s) : rnd_unit(s);
                for (int side = 0; side < 2; side++)
                    dtype_from_f64(dtype,
                                   (char *)c->data[0] +
                                       (size_t)(m * N * N + (side ? j * N + i : i * N + j)) *
                                           dtype_bytes(dtype),
                                   v);
            }
    add_out(c, dtype, 3, DIMS(2, N, N));
    set_bool(c, AK_LOWER, lower);
    c->rel = dtype == DT_F32 ? 1e-5 : 1e-12;
    need(s, c, "cholesky");
}

static void fft_case(Suite *s, int type, int in, int out, int64_t last_in, int64_t last_out) {
    Case *c = case_make(s, HLO_FFT);
    add_in(s, c, in, 3, DIMS(3, 10, last_in), false);
    add_out(c, out, 3, DIMS(3, 10, last_out));
    set_enum(c, AK_FFT_TYPE, type);
    set_ints(c, AK_FFT_LENGTH, 2, DIMS(10, last_in > last_out ? last_in : last_out));
    c->rel = in == DT_F32 || in == DT_C64 ? 1e-4 : 1e-10;
    need(s, c, "fft");
}

static void test_rest(Suite *s) {
    int before = s->failures;
    static const uint8_t bits[] = {DT_UI32, DT_UI64, DT_UI8, DT_UI16, DT_I32};
    for (int i = 0; i < 5; i++) {
        rng_case(s, bits[i], RNGALG_THREE_FRY, 2, 2, DIMS(7, 9));
        rng_case(s, bits[i], RNGALG_THREE_FRY, 2, 3, DIMS(3, 6, 5));
        rng_case(s, bits[i], RNGALG_PHILOX, 2 + i % 2, 2, DIMS(7, 9));
    }
    rng_case(s, DT_UI32, RNGALG_THREE_FRY, 2, 1, DIMS(5000));
    for (int f = 0; f < 2; f++) {
        norm_case(s, HLO_BATCH_NORM_TRAINING, f ? DT_F32 : DT_F64);
        norm_case(s, HLO_BATCH_NORM_INFERENCE, f ? DT_F32 : DT_F64);
        norm_case(s, HLO_BATCH_NORM_GRAD, f ? DT_F32 : DT_F64);
        cholesky_case(s, DT_F32, f);
        cholesky_case(s, DT_F64, f);
    }
    for (int i = 0; i < 32; i++)
        linalg_case(s, i & 16 ? DT_C64 : DT_F32, i & 1, i & 2,
                    i & 4 ? TRANSPOSE_ADJOINT : TRANSPOSE_NO, i & 8);
    fft_case(s, FFT_FFT, DT_C64, DT_C64, 14, 14);
    fft_case(s, FFT_IFFT, DT_C128, DT_C128, 9, 9);
    fft_case(s, FFT_RFFT, DT_F32, DT_C64, 12, 7);
    report(s, "random bits, normalisation, linear algebra, fft", before);
}

// --- checks ------------------------------------------------------------------------------------

static void test_checks(Suite *s) {
    int before = s->failures;
    for (int wrong = 0; wrong < 2; wrong++) {
        Case *c = case_make(s, HLO_CUSTOM_CALL);
        add_in(s, c, DT_F32, 2, DIMS(3, 4), false);
        c->in[1] = c->in[0], c->k.nin = 2;
        c->data[1] = arena_dup(&s->arena, c->data[0], tensor_bytes(&c->in[0]));
        ((float *)c->data[1])[7] += wrong ? 0.01f : 0;
        c->k.target = "check.expect_almost_eq";
        GpFn *fn = gp_find(&c->k);
        CaseRun r = case_once(s, c, fn, host_best(), s->pool[0], -1);
        if (r.status != (wrong ? OTRN_CHECK : OTRN_OK))
            case_fail(s, "check", "status %d", (int)r.status);
        if (wrong && !strstr(r.why, "[1,3]"))
            case_fail(s, "check", "message: %s", r.why);
    }
    Case *c = case_make(s, HLO_CUSTOM_CALL);
    add_in(s, c, DT_F32, 1, DIMS(3), false);
    add_out(c, DT_F32, 1, DIMS(3));
    c->k.target = "somebody_elses_kernel";
    if (gp_find(&c->k))
        case_fail(s, "custom_call", "an unknown target has a kernel");
    report(s, "checks and custom calls", before);
}

int main(int argc, char **argv) {
    static TestFn *const tests[] = {test_reduce,   test_windows, test_sort,
                                    test_products, test_rest,    test_checks};
    return suite_run(argc, argv, "gp_kern_test", tests, sizeof tests / sizeof *tests);
}
