// SPDX-License-Identifier: Apache-2.0
// gp_test.c — GpSimd kernels against the plain evaluator and against themselves: every host level, one to three
// threads, in place. Usage: gp_test [seed]
#include "gp_case.h"

#include "chip/vmath.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static const uint8_t numbers[] = {DT_I8, DT_I16, DT_I32, DT_I64, DT_UI8, DT_UI16, DT_UI32, DT_UI64,
                                  DT_F32, DT_F64, DT_BF16, DT_F16};
#define NNUMBERS ((int)(sizeof numbers / sizeof *numbers))

static void report(Suite *s, const char *name, int before) {
    if (s->failures == before)
        printf("ok %s\n", name);
    arena_reset(&s->arena);
}
static void need(Suite *s, const Case *c, const char *name) {
    if (!case_run(s, c, name))
        case_fail(s, name, "no kernel");
}
static int random_shape(Suite *s, int max_rank, int64_t max_dim, int64_t *dims) {
    int rank = (int)rnd_in(s, 0, max_rank);
    for (int i = 0; i < rank; i++)
        dims[i] = rnd(s) % 12 == 0 ? (int64_t)(rnd(s) % 2) : rnd_in(s, 1, max_dim);
    return rank;
}

// --- elementary functions: naive double, unit in the last place ------------------------------------

static double ulp_error(float got, double want) {
    float w = (float)want;
    if (isnan(w) || isnan(got))
        return isnan(w) && isnan(got) ? 0 : INFINITY;
    if (isinf(w) || isinf(got) || w == 0)
        return w == got ? 0 : w == 0 ? fabs(got) / 0x1p-149 : INFINITY;
    double ulp = fabsf(w) < 0x1p-126f ? 0x1p-149 : ldexp(1, ilogbf(w) - 23);
    return fabs((double)got - want) / ulp;
}
static double ref_logistic(double x) { return 1 / (1 + exp(-x)); }
static double ref_rsqrt(double x) { return 1 / sqrt(x); }

static void random_floats(Suite *s, float *x, size_t n) { // half any bits, half ordinary sizes
    for (size_t i = 0; i < n; i++) {
        uint32_t u = (uint32_t)(rnd(s) >> 32);
        memcpy(&x[i], &u, 4);
        if (i & 1)
            x[i] = (float)((rnd_unit(s) - 0.5) * ldexp(1, (int)rnd_in(s, -10, 8)));
    }
}

static void test_vmath(Suite *s) {
    typedef double Ref(double);
    static const struct {
        const char *name;
        size_t at;
        Ref *ref;
    } rows[] = {
#define ROW(n, r) {#n, offsetof(VMath, n), r}
        ROW(exp, exp),           ROW(expm1, expm1), ROW(log, log),           ROW(log1p, log1p), ROW(tanh, tanh),
        ROW(logistic, ref_logistic), ROW(sin, sin), ROW(cos, cos),           ROW(tan, tan),     ROW(sqrt, sqrt),
        ROW(rsqrt, ref_rsqrt),   ROW(cbrt, cbrt),   ROW(erf, erf),           ROW(erf_inv, vmath_erf_inv),
#undef ROW
    };
    int before = s->failures;
    static float x[4099], z[4099], y[HOST_COUNT][4099];
    for (size_t f = 0; f < sizeof rows / sizeof *rows; f++) {
        double worst = 0;
        for (int round = 0; round < 8; round++) {
            random_floats(s, x, 4099);
            for (int i = 0; i < 4099 && rows[f].ref == vmath_erf_inv; i++)
                x[i] = (float)(2 * rnd_unit(s) - 1);
            for (HostLevel l = 0; l <= host_best(); l++) {
                VMath1 *fn;
                memcpy(&fn, (const char *)vmath_f32(l) + rows[f].at, sizeof fn);
                fn(y[l], x, 4099);
                if (memcmp(y[l], y[0], sizeof x))
                    case_fail(s, rows[f].name, "%s: other bits", host_name(l));
            }
            for (int i = 0; i < 4099; i++)
                worst = fmax(worst, ulp_error(y[0][i], rows[f].ref(x[i])));
        }
        if (!(worst < 0.6))
            case_fail(s, rows[f].name, "%.3f ulp", worst);
    }
    double worst_pow = 0, worst_atan2 = 0;
    for (int round = 0; round < 20; round++) {
        random_floats(s, x, 4099);
        random_floats(s, z, 4099);
        for (int i = 0; i < 4099; i += 7)
            z[i] = (float)rnd_in(s, -5, 5);
        for (HostLevel l = 0; l <= host_best(); l++) {
            vmath_f32(l)->pow(y[l], x, z, 4099);
            if (memcmp(y[l], y[0], sizeof x))
                case_fail(s, "pow", "%s: other bits", host_name(l));
        }
        for (int i = 0; i < 4099; i++)
            worst_pow = fmax(worst_pow, ulp_error(y[0][i], pow(x[i], z[i])));
        vmath_f32(host_best())->atan2(y[0], x, z, 4099);
        for (int i = 0; i < 4099; i++)
            worst_atan2 = fmax(worst_atan2, ulp_error(y[0][i], atan2(x[i], z[i])));
    }
    if (!(worst_pow < 0.6) || !(worst_atan2 < 0.6))
        case_fail(s, "pow, atan2", "%.3f and %.3f ulp", worst_pow, worst_atan2);
    report(s, "elementary functions within 0.6 ulp", before);
}

// --- elementwise -----------------------------------------------------------------------------------

static bool is_elementwise(int op) {
    int cls = hlo_op_rows[op].cls;
    return cls == HC_EW1 || cls == HC_EW2 || cls == HC_EW3;
}

// The result type that gives the op a kernel, or DT_INVALID.
static int result_type(Case *c, int in) {
    static const uint8_t tries[] = {DT_I1, DT_C64, DT_C128, DT_F32, DT_F64};
    c->out[0].dtype = (uint8_t)in;
    if (gp_find(&c->k))
        return in;
    for (size_t i = 0; i < sizeof tries; i++) {
        c->out[0].dtype = tries[i];
        if (gp_find(&c->k))
            return tries[i];
    }
    return DT_INVALID;
}

// What a type leaves open is not compared: the sign of NaN where formats have none, its place in a total order.
static bool is_defined(int op, int dtype, int variant) {
    static const uint16_t plain[] = {HLO_ADD, HLO_SUBTRACT, HLO_MULTIPLY, HLO_MAXIMUM, HLO_NEGATE, HLO_ABS,
                                     HLO_COMPARE, HLO_SELECT, HLO_CLAMP, HLO_FLOOR, HLO_TANH, HLO_LOGISTIC};
    int flavour = dtype_row(dtype)->flavour;
    if (op == HLO_REDUCE_PRECISION)
        return dtype == DT_F32 || dtype == DT_F64 || dtype == DT_BF16 || dtype == DT_F16;
    if (op == HLO_COMPARE && variant >= 6)
        return flavour != FF_FNUZ;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (plain[i] == op)
            return true;
    return flavour != FF_SAT;
}

static bool elementwise_case(Suite *s, int op, int dtype, int64_t n, int variant) {
    Case *c = case_make(s, (HloOpcode)op);
    int nin = hlo_op_rows[op].operands;
    // Functions whose f64 and complex forms lose digits far out are tried on ordinary values there.
    bool wild = dtype_row(dtype)->cls != DC_COMPLEX && dtype != DT_F64;
    for (int i = 0; i < nin; i++)
        add_in(s, c, op == HLO_SELECT && i == 0 ? DT_I1 : dtype, 1, DIMS(n), wild);
    add_out(c, dtype, 1, DIMS(n));
    if (op == HLO_COMPARE) {
        set_enum(c, AK_COMPARISON_DIRECTION, variant % 6);
        set_enum(c, AK_COMPARE_TYPE, dtype_is_float(dtype) && variant >= 6 ? CMPT_TOTALORDER : CMPT_NOTYPE);
    }
    if (op == HLO_REDUCE_PRECISION) {
        set_int(c, AK_EXPONENT_BITS, rnd_in(s, 2, 11));
        set_int(c, AK_MANTISSA_BITS, rnd_in(s, 0, 30));
    }
    if (result_type(c, dtype) == DT_INVALID)
        return false;
    c->rel = dtype_is_complex(dtype) ? (dtype == DT_C64 ? 1e-5 : 1e-10) : dtype == DT_F64 ? 1e-9 : 0;
    char name[128];
    snprintf(name, sizeof name, "%s %s %lld", hlo_op_rows[op].name, dtype_row(dtype)->name, (long long)n);
    case_run(s, c, name);
    return true;
}

static void test_elementwise(Suite *s) {
    int before = s->failures, found[DT_COUNT] = {0};
    for (int op = 1; op < HLO_OPCODE_COUNT; op++) {
        if (!is_elementwise(op) || op == HLO_CONVERT || !eval_has((HloOpcode)op))
            continue;
        int variants = op == HLO_COMPARE ? 12 : op == HLO_REDUCE_PRECISION ? 4 : 1;
        for (int d = 1; d < DT_COUNT; d++)
            for (int v = 0; v < variants && dtype_bytes(d) && d != DT_INDEX && is_defined(op, d, v); v++)
                found[d] += elementwise_case(s, op, d, v % 2 ? 37 : 700, v) && v == 0;
    }
    if (found[DT_F32] < 45 || found[DT_BF16] < 45 || found[DT_I32] < 20 || found[DT_C64] < 25 || found[DT_I4] < 20)
        case_fail(s, "elementwise", "ops with kernels: f32 %d bf16 %d i32 %d c64 %d i4 %d", found[DT_F32],
                  found[DT_BF16], found[DT_I32], found[DT_C64], found[DT_I4]);
    elementwise_case(s, HLO_ADD, DT_F32, 100003, 0);
    elementwise_case(s, HLO_TANH, DT_BF16, 70001, 0);
    elementwise_case(s, HLO_MULTIPLY, DT_F32, 0, 0);
    report(s, "elementwise: every op, every type", before);
}

static void test_convert(Suite *s) {
    int before = s->failures, pairs = 0;
    for (int from = 1; from < DT_COUNT; from++)
        for (int to = 1; to < DT_COUNT; to++) {
            if (from == DT_INDEX || to == DT_INDEX || !dtype_bytes(from) || !dtype_bytes(to))
                continue;
            Case *c = case_make(s, HLO_CONVERT);
            add_in(s, c, from, 1, DIMS(600), true);
            add_out(c, to, 1, DIMS(600));
            c->exact = !dtype_is_float(to); // NaN codes may differ between equals
            char name[96];
            snprintf(name, sizeof name, "convert %s to %s", dtype_row(from)->name, dtype_row(to)->name);
            need(s, c, name);
            pairs++;
        }
    if (pairs < 700)
        case_fail(s, "convert", "only %d pairs", pairs);
    report(s, "convert: every pair of types", before);
}

static void test_scalars(Suite *s) {
    int before = s->failures;
    for (int i = 0; i < NNUMBERS; i++) {
        int d = numbers[i];
        Case *c = case_make(s, HLO_SELECT);
        add_in(s, c, DT_I1, 0, NULL, false);
        add_in(s, c, d, 2, DIMS(33, 41), true);
        add_in(s, c, d, 2, DIMS(33, 41), true);
        add_out(c, d, 2, DIMS(33, 41));
        c->exact = true;
        need(s, c, "select by a scalar");
        c = case_make(s, HLO_CLAMP);
        add_scalar(s, c, d, 1);
        add_in(s, c, d, 2, DIMS(33, 41), true);
        add_scalar(s, c, d, 3);
        add_out(c, d, 2, DIMS(33, 41));
        need(s, c, "clamp between scalars");
    }
    report(s, "scalar predicates and bounds", before);
}

// --- movement --------------------------------------------------------------------------------------

static int any_type(Suite *s) {
    static const uint8_t types[] = {DT_I1, DT_I4, DT_I16, DT_F32, DT_BF16, DT_I64, DT_F64, DT_C128, DT_UI32};
    return types[rnd(s) % sizeof types];
}

static void shuffle(Suite *s, int64_t *v, int n) {
    for (int i = 0; i < n; i++)
        v[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int64_t j = rnd_in(s, 0, i), t = v[i];
        v[i] = v[j], v[j] = t;
    }
}

static void move_transpose(Suite *s, int rank, const int64_t *dims, int dtype) {
    int64_t perm[OTRN_MAX_RANK], out[OTRN_MAX_RANK];
    Case *c = case_make(s, HLO_TRANSPOSE);
    shuffle(s, perm, rank);
    for (int i = 0; i < rank; i++)
        out[i] = dims[perm[i]];
    add_in(s, c, dtype, rank, dims, true);
    add_out(c, dtype, rank, out);
    set_ints(c, AK_PERMUTATION, rank, perm);
    c->exact = true;
    need(s, c, "transpose");
}

static void move_broadcast(Suite *s, int rank, const int64_t *dims, int dtype) {
    int64_t axes[OTRN_MAX_RANK], in[OTRN_MAX_RANK];
    int n = 0;
    for (int d = 0; d < rank; d++)
        if (rnd(s) % 2) {
            in[n] = rnd(s) % 3 ? dims[d] : 1;
            axes[n++] = d;
        }
    Case *c = case_make(s, HLO_BROADCAST_IN_DIM);
    add_in(s, c, dtype, n, in, true);
    add_out(c, dtype, rank, dims);
    set_ints(c, AK_BROADCAST_DIMENSIONS, n, axes);
    c->exact = true;
    need(s, c, "broadcast_in_dim");
}

static void move_slice(Suite *s, int rank, const int64_t *dims, int dtype) {
    int64_t start[8], limit[8], stride[8], out[8];
    for (int d = 0; d < rank; d++) {
        start[d] = rnd_in(s, 0, dims[d]);
        limit[d] = rnd_in(s, start[d], dims[d]);
        stride[d] = rnd_in(s, 1, 3);
        out[d] = (limit[d] - start[d] + stride[d] - 1) / stride[d];
    }
    Case *c = case_make(s, HLO_SLICE);
    add_in(s, c, dtype, rank, dims, true);
    add_out(c, dtype, rank, out);
    set_ints(c, AK_START_INDICES, rank, start);
    set_ints(c, AK_LIMIT_INDICES, rank, limit);
    set_ints(c, AK_STRIDES, rank, stride);
    c->exact = true;
    need(s, c, "slice");
}

static void move_pad(Suite *s, int rank, const int64_t *dims, int dtype) {
    int64_t low[8], high[8], inner[8], out[8];
    for (int d = 0; d < rank; d++) {
        low[d] = rnd_in(s, -3, 3), high[d] = rnd_in(s, -3, 3), inner[d] = rnd_in(s, 0, 2);
        out[d] = dims[d] + (dims[d] ? dims[d] - 1 : 0) * inner[d] + low[d] + high[d];
        if (out[d] < 0)
            high[d] -= out[d], out[d] = 0;
    }
    Case *c = case_make(s, HLO_PAD);
    add_in(s, c, dtype, rank, dims, true);
    add_in(s, c, dtype, 0, NULL, true);
    add_out(c, dtype, rank, out);
    set_ints(c, AK_EDGE_PADDING_LOW, rank, low);
    set_ints(c, AK_EDGE_PADDING_HIGH, rank, high);
    set_ints(c, AK_INTERIOR_PADDING, rank, inner);
    c->exact = true;
    need(s, c, "pad");
}

static void move_others(Suite *s, int rank, const int64_t *dims, int dtype) {
    int64_t axes[8], out[8];
    shuffle(s, axes, rank);
    Case *c = case_make(s, HLO_REVERSE);
    add_in(s, c, dtype, rank, dims, true);
    add_out(c, dtype, rank, dims);
    set_ints(c, AK_DIMENSIONS, (int)rnd_in(s, 0, rank), axes);
    c->exact = true;
    need(s, c, "reverse");
    if (!rank)
        return;
    c = case_make(s, HLO_CONCATENATE);
    int64_t axis = rnd_in(s, 0, rank - 1), total = 0;
    memcpy(out, dims, sizeof *dims * (size_t)rank);
    for (int i = 0; i < 3; i++) {
        out[axis] = rnd_in(s, 0, 5);
        total += out[axis];
        add_in(s, c, dtype, rank, out, true);
    }
    out[axis] = total;
    add_out(c, dtype, rank, out);
    set_int(c, AK_DIMENSION, axis);
    c->exact = true;
    need(s, c, "concatenate");
    c = case_make(s, HLO_IOTA);
    add_out(c, dtype == DT_I1 ? DT_I32 : dtype, rank, dims);
    set_int(c, AK_IOTA_DIMENSION, axis);
    need(s, c, "iota");
}

static void move_dynamic(Suite *s, int rank, const int64_t *dims, int dtype) {
    int64_t size[8];
    for (int d = 0; d < rank; d++)
        size[d] = rnd_in(s, 0, dims[d]);
    int index = rnd(s) % 2 ? DT_I32 : DT_UI8;
    Case *c = case_make(s, HLO_DYNAMIC_SLICE);
    add_in(s, c, dtype, rank, dims, true);
    for (int d = 0; d < rank; d++)
        add_index(s, c, index, 0, NULL, -3, dims[d] + 3);
    add_out(c, dtype, rank, size);
    set_ints(c, AK_SLICE_SIZES, rank, size);
    c->exact = true;
    need(s, c, "dynamic_slice");
    c = case_make(s, HLO_DYNAMIC_UPDATE_SLICE);
    add_in(s, c, dtype, rank, dims, true);
    add_in(s, c, dtype, rank, size, true);
    for (int d = 0; d < rank; d++)
        add_index(s, c, index, 0, NULL, -3, dims[d] + 3);
    add_out(c, dtype, rank, dims);
    c->exact = true;
    need(s, c, "dynamic_update_slice");
}

static void test_move(Suite *s) {
    int before = s->failures;
    for (int i = 0; i < 60; i++) {
        int64_t dims[8];
        int rank = random_shape(s, 5, 7, dims), dtype = any_type(s);
        move_transpose(s, rank, dims, dtype);
        move_broadcast(s, rank, dims, dtype);
        move_slice(s, rank, dims, dtype);
        move_pad(s, rank, dims, dtype);
        move_others(s, rank, dims, dtype);
        move_dynamic(s, rank, dims, dtype);
    }
    int64_t ones[OTRN_MAX_RANK];
    for (int i = 0; i < OTRN_MAX_RANK; i++)
        ones[i] = i % 5 == 0 ? 2 : 1;
    move_transpose(s, OTRN_MAX_RANK, ones, DT_F32);
    move_broadcast(s, OTRN_MAX_RANK, ones, DT_BF16);
    move_transpose(s, 2, DIMS(301, 517), DT_F32);
    move_transpose(s, 3, DIMS(5, 130, 70), DT_BF16);
    move_broadcast(s, 2, DIMS(300, 257), DT_F32);
    report(s, "data movement", before);
}

static void test_bitcast(Suite *s) {
    int before = s->failures;
    static const struct {
        uint8_t from, to;
        int rank_in, rank_out;
        int64_t in[3], out[3];
    } rows[] = {{DT_F32, DT_UI32, 2, 2, {3, 5}, {3, 5}},     {DT_F32, DT_UI8, 2, 3, {3, 5}, {3, 5, 4}},
                {DT_UI16, DT_F64, 3, 2, {2, 3, 4}, {2, 3}},  {DT_I4, DT_UI4, 1, 1, {9}, {9}},
                {DT_UI32, DT_F32, 1, 1, {70001}, {70001}},   {DT_BF16, DT_I16, 1, 1, {0}, {0}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Case *c = case_make(s, HLO_BITCAST_CONVERT);
        add_in(s, c, rows[i].from, rows[i].rank_in, rows[i].in, true);
        add_out(c, rows[i].to, rows[i].rank_out, rows[i].out);
        c->exact = true;
        need(s, c, "bitcast_convert");
    }
    report(s, "bitcast_convert", before);
}

// --- gather and scatter ----------------------------------------------------------------------------

typedef struct IndexCase { // one set of dimension numbers, for both directions
    const char *name;
    int rank, irank, wrank;
    int64_t operand[4], indices[4], windows[4];
    int noffset, ninserted, nbatch, nmap;
    int64_t offset[3], inserted[3], batch[2], ibatch[2], map[3], vec, sizes[4];
} IndexCase;

static const IndexCase index_cases[] = {
    {.name = "rows", .rank = 2, .irank = 2, .wrank = 2, .operand = {50, 130}, .indices = {300, 1},
     .windows = {300, 130}, .noffset = 1, .offset = {1}, .ninserted = 1, .inserted = {0}, .nmap = 1, .map = {0},
     .vec = 1, .sizes = {1, 130}},
    {.name = "implicit vector", .rank = 1, .irank = 2, .wrank = 2, .operand = {20}, .indices = {4, 9},
     .windows = {4, 9}, .ninserted = 1, .inserted = {0}, .nmap = 1, .map = {0}, .vec = 2, .sizes = {1}},
    {.name = "columns", .rank = 2, .irank = 2, .wrank = 2, .operand = {6, 11}, .indices = {7, 1}, .windows = {6, 7},
     .noffset = 1, .offset = {0}, .ninserted = 1, .inserted = {1}, .nmap = 1, .map = {1}, .vec = 1, .sizes = {6, 1}},
    {.name = "windows", .rank = 3, .irank = 2, .wrank = 4, .operand = {5, 6, 7}, .indices = {3, 9},
     .windows = {9, 2, 3, 7}, .noffset = 3, .offset = {1, 2, 3}, .nmap = 3, .map = {2, 0, 1}, .vec = 0,
     .sizes = {2, 3, 7}},
    {.name = "batched", .rank = 3, .irank = 3, .wrank = 3, .operand = {4, 9, 5}, .indices = {4, 6, 1},
     .windows = {4, 6, 5}, .noffset = 1, .offset = {2}, .ninserted = 1, .inserted = {1}, .nbatch = 1, .batch = {0},
     .ibatch = {0}, .nmap = 1, .map = {1}, .vec = 2, .sizes = {1, 1, 5}},
    {.name = "points", .rank = 2, .irank = 2, .wrank = 1, .operand = {8, 9}, .indices = {40, 2}, .windows = {40},
     .ninserted = 2, .inserted = {0, 1}, .nmap = 2, .map = {1, 0}, .vec = 1, .sizes = {1, 1}},
    {.name = "nothing", .rank = 2, .irank = 2, .wrank = 2, .operand = {3, 4}, .indices = {0, 1}, .windows = {0, 4},
     .noffset = 1, .offset = {1}, .ninserted = 1, .inserted = {0}, .nmap = 1, .map = {0}, .vec = 1, .sizes = {1, 4}},
};

static void gather_case(Suite *s, const IndexCase *x, int dtype, int itype) {
    Case *c = case_make(s, HLO_GATHER);
    add_in(s, c, dtype, x->rank, x->operand, true);
    add_index(s, c, itype, x->irank, x->indices, -2, x->operand[x->map[0]] + 1);
    add_out(c, dtype, x->wrank, x->windows);
    set_ints(c, AK_OFFSET_DIMS, x->noffset, x->offset);
    set_ints(c, AK_COLLAPSED_SLICE_DIMS, x->ninserted, x->inserted);
    set_ints(c, AK_OPERAND_BATCHING_DIMS, x->nbatch, x->batch);
    set_ints(c, AK_START_INDICES_BATCHING_DIMS, x->nbatch, x->ibatch);
    set_ints(c, AK_START_INDEX_MAP, x->nmap, x->map);
    set_int(c, AK_INDEX_VECTOR_DIM, x->vec);
    set_ints(c, AK_SLICE_SIZES, x->rank, x->sizes);
    set_bool(c, AK_INDICES_ARE_SORTED, false);
    c->exact = true;
    need(s, c, x->name);
}

static void scatter_case(Suite *s, const IndexCase *x, int dtype, int itype, HloOpcode op) {
    Case *c = case_make(s, HLO_SCATTER);
    add_in(s, c, dtype, x->rank, x->operand, false);
    add_index(s, c, itype, x->irank, x->indices, -2, x->operand[x->map[0]] + 1);
    add_in(s, c, dtype, x->wrank, x->windows, false);
    add_out(c, dtype, x->rank, x->operand);
    set_ints(c, AK_UPDATE_WINDOW_DIMS, x->noffset, x->offset);
    set_ints(c, AK_INSERTED_WINDOW_DIMS, x->ninserted, x->inserted);
    set_ints(c, AK_INPUT_BATCHING_DIMS, x->nbatch, x->batch);
    set_ints(c, AK_SCATTER_INDICES_BATCHING_DIMS, x->nbatch, x->ibatch);
    set_ints(c, AK_SCATTER_DIMS_TO_OPERAND_DIMS, x->nmap, x->map);
    set_int(c, AK_INDEX_VECTOR_DIM, x->vec);
    set_bool(c, AK_INDICES_ARE_SORTED, false);
    set_bool(c, AK_UNIQUE_INDICES, false);
    uint8_t types[4] = {(uint8_t)dtype, (uint8_t)dtype, (uint8_t)dtype, (uint8_t)dtype};
    KStep twice[2] = {{.op = HLO_MULTIPLY, .dst = 2, .src = {0, 1}}, {.op = HLO_SUBTRACT, .dst = 3, .src = {2, 1}}};
    if (op == HLO_NONE) // a plain set
        add_prog(c, 2, 2, types, 0, twice, 1, (const uint16_t[]){1});
    else if (op == HLO_SUBTRACT) // two steps
        add_prog(c, 4, 2, types, 2, twice, 1, (const uint16_t[]){3});
    else
        add_body(c, op, dtype, dtype, 0);
    need(s, c, x->name);
}

static void test_index(Suite *s) {
    int before = s->failures;
    static const uint8_t itypes[] = {DT_I32, DT_I64, DT_UI32, DT_UI8};
    static const HloOpcode ops[] = {HLO_ADD, HLO_NONE, HLO_MAXIMUM, HLO_SUBTRACT, HLO_MULTIPLY};
    for (size_t i = 0; i < sizeof index_cases / sizeof *index_cases; i++)
        for (int r = 0; r < 6; r++) {
            gather_case(s, &index_cases[i], any_type(s), itypes[r % 4]);
            scatter_case(s, &index_cases[i], r % 2 ? DT_F32 : DT_I32, itypes[r % 4], ops[r % 5]);
        }
    report(s, "gather and scatter", before);
}

// --- reductions ------------------------------------------------------------------------------------

// Sums of floats against a naive sum in double: what is allowed is relative to the sum of magnitudes, since the
// evaluator's own sequential rounding drifts.
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
        double v = dtype_to_f64(in->dtype, (char *)c->data[0] + e * (int64_t)dtype_bytes(in->dtype));
        sum[at] += v, size[at] += fabs(v);
    }
    double unit = in->dtype == DT_F64 ? 0x1p-53 : in->dtype == DT_F32 ? 0x1p-24 : 0;
    double last = in->dtype == DT_BF16 ? 0x1p-8 : in->dtype == DT_F16 ? 0x1p-11 : unit;
    for (int64_t i = 0; i < out->elems; i++) {
        double got = dtype_to_f64(out->dtype, (char *)r->out[0] + i * (int64_t)dtype_bytes(out->dtype));
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
    if (two_steps) { // the same through the general way: acc op x op x op x differs, so add twice a part
        uint8_t types[4] = {(uint8_t)dtype, (uint8_t)dtype, (uint8_t)dtype, (uint8_t)dtype};
        KStep steps[2] = {{.op = (uint16_t)op, .dst = 2, .src = {0, 1}}, {.op = HLO_MAXIMUM, .dst = 3, .src = {2, 2}}};
        add_prog(c, 4, 2, types, 2, steps, 1, (const uint16_t[]){3});
    } else {
        add_body(c, op, dtype, dtype, 0);
    }
    char name[128];
    snprintf(name, sizeof name, "reduce %s %s rank %d, %d dims, %lld elements%s", hlo_op_rows[op].name,
             dtype_row(dtype)->name, rank, nred, (long long)c->in[0].elems, two_steps ? ", program" : "");
    c->rel = dtype == DT_F32 ? 2e-5 : dtype == DT_BF16 || dtype == DT_F16 ? 0.06 : dtype == DT_F64 ? 1e-12 : 0;
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
    uint8_t types[] = {DT_F32, DT_I32, DT_F32, DT_I32, DT_I1, DT_I1, DT_I1, DT_I1, DT_I1, DT_F32, DT_I32};
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
    static const HloOpcode ops[] = {HLO_ADD, HLO_MULTIPLY, HLO_MAXIMUM, HLO_MINIMUM, HLO_AND, HLO_OR};
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
        reduce_case(s, i & 1 ? DT_F32 : DT_I32, HLO_ADD, rank, dims, (int)rnd_in(s, 0, rank), axes, i % 3 == 0);
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

// --- windows ---------------------------------------------------------------------------------------

static void window_attrs(Case *c, int rank, const int64_t *size, const int64_t *step, const int64_t *pad) {
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
        int64_t whole = (dims[d] - 1) * base[d] + 1 + pad[2 * d] + pad[2 * d + 1], span = (size[d] - 1) * gap[d] + 1;
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

static void scan_case(Suite *s, int dtype, HloOpcode op, double init, int64_t n, int64_t inner, bool back) {
    Case *c = case_make(s, HLO_REDUCE_WINDOW);
    add_in(s, c, dtype, 3, DIMS(2, n, inner), false);
    add_in(s, c, dtype, 0, NULL, false);
    if (dtype_is_float(dtype))
        dtype_from_f64(dtype, c->data[1], init);
    else
        dtype_from_i64(dtype, c->data[1], (int64_t)init);
    add_out(c, dtype, 3, DIMS(2, n, inner));
    window_attrs(c, 3, DIMS(1, n, 1), DIMS(1, 1, 1), back ? DIMS(0, 0, 0, n - 1, 0, 0) : DIMS(0, 0, n - 1, 0, 0, 0));
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
        window_case(s, numbers[rnd(s) % (size_t)NNUMBERS], i % 2 ? HLO_ADD : HLO_MAXIMUM, rnd_in(s, -1, 1));
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

// --- sort ------------------------------------------------------------------------------------------

static void sort_case(Suite *s, int dtype, int dir, int type, int64_t n, int64_t inner, bool lexicographic) {
    Case *c = case_make(s, HLO_SORT);
    for (int i = 0; i < 2; i++) {
        add_in(s, c, i ? DT_I32 : dtype, 3, DIMS(2, n, inner), false);
        add_out(c, i ? DT_I32 : dtype, 3, DIMS(2, n, inner));
    }
    set_int(c, AK_DIMENSION, 1);
    set_bool(c, AK_IS_STABLE, true);
    uint8_t types[] = {(uint8_t)dtype, (uint8_t)dtype, DT_I32, DT_I32, DT_I1, DT_I1, DT_I1, DT_I1, DT_I1};
    KStep steps[] = {{.op = HLO_COMPARE, .dst = 4, .src = {0, 1}, .attr = {(int16_t)dir, (int16_t)type}},
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

// --- products --------------------------------------------------------------------------------------

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
    // input [space, batch, feature, space], kernel [out, space, in, space], output [feature, space, space, batch]
    int64_t step[2] = {rnd_in(s, 1, 2), 1}, in_gap[2] = {rnd_in(s, 1, 2), 1}, k_gap[2] = {1, rnd_in(s, 1, 2)};
    int64_t pad[4] = {rnd_in(s, -1, 2), 1, 0, rnd_in(s, 0, 2)}, dims[2] = {6, 5}, kernel[2] = {3, 2}, out[2];
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
    static const uint8_t types[][3] = {{DT_I32, DT_I32, DT_I32}, {DT_I8, DT_I8, DT_I32}, {DT_UI8, DT_UI8, DT_UI8},
                                       {DT_F64, DT_F64, DT_F64}, {DT_C64, DT_C64, DT_C64}, {DT_C128, DT_C128, DT_C128},
                                       {DT_F32, DT_F32, DT_F32}, {DT_I64, DT_I64, DT_I64}, {DT_I16, DT_I16, DT_I16}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        dot_case(s, types[i][0], types[i][1], types[i][2]);
    static const uint8_t conv_types[] = {DT_F32, DT_F64, DT_I32, DT_C64, DT_BF16};
    for (int r = 0; r < 15; r++)
        conv_case(s, conv_types[r % 5], r % 3 ? 2 : 1, r % 3 == 2);
    report(s, "dot_general and convolution", before);
}

// --- the rest --------------------------------------------------------------------------------------

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
    for (int i = 1; i < (op == HLO_BATCH_NORM_TRAINING ? 3 : op == HLO_BATCH_NORM_GRAD ? 4 : 5); i++) {
        add_in(s, c, dtype, 1, DIMS(5), false);
        for (int e = 0; e < 5; e++) // variances are not negative
            dtype_from_f64(dtype, (char *)c->data[i] + (size_t)e * dtype_bytes(dtype), 0.5 + rnd_unit(s));
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
                    dtype_from_f64(dtype, (char *)c->data[0] + (size_t)(m * N * N + (side ? j * N + i : i * N + j)) *
                                              dtype_bytes(dtype), v);
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
        linalg_case(s, i & 16 ? DT_C64 : DT_F32, i & 1, i & 2, i & 4 ? TRANSPOSE_ADJOINT : TRANSPOSE_NO, i & 8);
    fft_case(s, FFT_FFT, DT_C64, DT_C64, 14, 14);
    fft_case(s, FFT_IFFT, DT_C128, DT_C128, 9, 9);
    fft_case(s, FFT_RFFT, DT_F32, DT_C64, 12, 7);
    report(s, "random bits, normalisation, linear algebra, fft", before);
}

// --- checks, and kernels that must be refused ------------------------------------------------------

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

// Damage to attributes and shapes: either there is no kernel, or it stays inside its tensors (the guards and the
// sanitizers tell).
static void test_hostile(Suite *s) {
    int before = s->failures, ran = 0, refused = 0;
    for (int i = 0; i < 3000; i++) {
        const IndexCase *x = &index_cases[rnd(s) % (sizeof index_cases / sizeof *index_cases)];
        Case *c = case_make(s, rnd(s) % 2 ? HLO_GATHER : HLO_PAD);
        int64_t v[4], dims[4] = {rnd_in(s, 0, 4), rnd_in(s, 0, 4), rnd_in(s, 1, 3), 2};
        if (c->k.op == HLO_GATHER) {
            add_in(s, c, DT_F32, x->rank, x->operand, false);
            add_index(s, c, DT_I32, x->irank, x->indices, -99, 99);
            add_out(c, DT_F32, x->wrank, rnd(s) % 2 ? x->windows : dims);
            set_ints(c, AK_OFFSET_DIMS, x->noffset, x->offset);
            set_ints(c, AK_COLLAPSED_SLICE_DIMS, x->ninserted, x->inserted);
            set_ints(c, AK_OPERAND_BATCHING_DIMS, x->nbatch, x->batch);
            set_ints(c, AK_START_INDICES_BATCHING_DIMS, x->nbatch, x->ibatch);
            set_ints(c, AK_START_INDEX_MAP, x->nmap, x->map);
            set_int(c, AK_INDEX_VECTOR_DIM, x->vec);
            set_ints(c, AK_SLICE_SIZES, x->rank, x->sizes);
        } else {
            add_in(s, c, DT_F32, 2, dims, false);
            add_in(s, c, DT_F32, 0, NULL, false);
            add_out(c, DT_F32, 2, DIMS(rnd_in(s, 0, 9), rnd_in(s, 0, 9)));
            set_ints(c, AK_EDGE_PADDING_LOW, 2, DIMS(rnd_in(s, -3, 5), 1));
            set_ints(c, AK_EDGE_PADDING_HIGH, 2, DIMS(rnd_in(s, -3, 5), 1));
            set_ints(c, AK_INTERIOR_PADDING, 2, DIMS(0, rnd_in(s, 0, 1)));
        }
        for (int d = 0; d < 4; d++)
            v[d] = rnd(s) % 5 ? rnd_in(s, -2, 5) : (int64_t)rnd(s);
        int which = (int)rnd_in(s, 0, hlo_op_rows[c->k.op].nattrs - 1);
        if (c->attrs[which].kind == HA_INTS && rnd(s) % 2)
            c->attrs[which].ints = arena_dup(&s->arena, v, sizeof v);
        else if (c->attrs[which].kind == HA_INT)
            c->attrs[which].i = v[0];
        if (c->attrs[which].n > 4)
            c->attrs[which].n = 4;
        GpFn *fn = gp_find(&c->k);
        fn ? ran++ : refused++;
        if (fn) {
            CaseRun r = case_once(s, c, fn, host_best(), s->pool[1], -1);
            if (!guards_ok(c, &r))
                case_fail(s, "hostile", "wrote behind a result");
        }
    }
    if (!ran || !refused)
        case_fail(s, "hostile", "%d ran, %d refused", ran, refused);
    report(s, "damaged kernels", before);
}

int main(int argc, char **argv) {
    static Suite s;
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20240607;
    printf("seed %llu\n", (unsigned long long)seed);
    s.random = seed * 0x9e3779b97f4a7c15u | 1;
    arena_init(&s.arena, &s.ctx);
    jmp_buf here;
    if (!CTX_TRY(&s.ctx, here)) {
        printf("FAIL gp_test: %s\n", s.ctx.err.text);
        return 1;
    }
    for (int i = 0; i < CASE_POOLS; i++)
        s.pool[i] = pool_make(i + 1);
    test_vmath(&s);
    test_elementwise(&s);
    test_convert(&s);
    test_scalars(&s);
    test_move(&s);
    test_bitcast(&s);
    test_index(&s);
    test_reduce(&s);
    test_windows(&s);
    test_sort(&s);
    test_products(&s);
    test_rest(&s);
    test_checks(&s);
    test_hostile(&s);
    for (int i = 0; i < CASE_POOLS; i++)
        pool_free(s.pool[i]);
    blocks_free(&s);
    arena_fini(&s.arena);
    printf("%d cases, %d failures\n", s.cases, s.failures);
    return s.failures != 0;
}
