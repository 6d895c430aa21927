// SPDX-License-Identifier: Apache-2.0
// gp_test.c — GpSimd kernels without regions, gather and scatter, against the plain evaluator and
// against themselves: every host level, one to three threads, in place (gp_case.h). Usage: gp_test
// [seed]
#include "gp_case.h"

#include "base/elem.h"
#include "chip/gpsimd/gp.h"

// --- elementary functions: naive double, unit in the last place --------------------------------

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
        ROW(exp, exp),         ROW(expm1, expm1),
        ROW(log, log),         ROW(log1p, log1p),
        ROW(tanh, tanh),       ROW(logistic, ref_logistic),
        ROW(sin, sin),         ROW(cos, cos),
        ROW(tan, tan),         ROW(sqrt, sqrt),
        ROW(rsqrt, ref_rsqrt), ROW(cbrt, cbrt),
        ROW(erf, erf),         ROW(erf_inv, elem_erf_inv),
#undef ROW
    };
    int before = s->failures;
    static float x[4099], z[4099], y[HOST_COUNT][4099];
    for (size_t f = 0; f < sizeof rows / sizeof *rows; f++) {
        double worst = 0;
        for (int round = 0; round < 8; round++) {
            random_floats(s, x, 4099);
            for (int i = 0; i < 4099 && rows[f].ref == elem_erf_inv; i++)
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
        bool quick = rows[f].ref == exp || rows[f].ref == tanh || rows[f].ref == ref_logistic;
        if (!(worst < (rows[f].ref == tanh ? 2.5 : quick ? 2 : 0.6))) // these three stay in f32
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
    report(s, "elementary functions within 0.6 ulp, quick ones within 2.5", before);
}

// bf16 has its own shorter tanh: every result is the exact one rounded.
static void test_tanh_bf16(Suite *s) {
    static uint16_t x[65536], y[65536], want[65536];
    static double exact[65536];
    int before = s->failures;
    for (uint32_t i = 0; i < 65536; i++) {
        x[i] = (uint16_t)i;
        exact[i] = tanh(dtype_to_f64(DT_BF16, &x[i]));
    }
    Lane lane;
    if (!lane_find(&lane, &gp_level_portable, HLO_CONVERT, DT_BF16, (uint8_t[]){DT_F64}, 1, NULL))
        case_fail(s, "tanh", "no conversion");
    lane_run(&lane, want, (const void *[]){exact}, 65536);
    for (HostLevel l = 0; l <= host_best(); l++) {
        if (!lane_find(&lane, gp_level(l), HLO_TANH, DT_BF16, (uint8_t[]){DT_BF16}, 1, NULL))
            case_fail(s, "tanh", "no lane");
        lane_run(&lane, y, (const void *[]){x}, 65536);
        for (int i = 0; i < 65536; i++)
            if (y[i] != want[i] && !isnan(exact[i]))
                case_fail(s, "tanh", "%s: bf16 0x%04x gives 0x%04x", host_name(l), i, y[i]);
    }
    report(s, "tanh of every bf16", before);
}

// --- elementwise -------------------------------------------------------------------------------

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

// What a type leaves open is not compared: the sign of NaN where formats have none, its place in a
// total order.
static bool is_defined(int op, int dtype, int variant) {
    static const uint16_t plain[] = {HLO_ADD,    HLO_SUBTRACT, HLO_MULTIPLY, HLO_MAXIMUM,
                                     HLO_NEGATE, HLO_ABS,      HLO_COMPARE,  HLO_SELECT,
                                     HLO_CLAMP,  HLO_FLOOR,    HLO_TANH,     HLO_LOGISTIC};
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
        set_enum(c, AK_COMPARE_TYPE,
                 dtype_is_float(dtype) && variant >= 6 ? CMPT_TOTALORDER : CMPT_NOTYPE);
    }
    if (op == HLO_REDUCE_PRECISION) {
        set_int(c, AK_EXPONENT_BITS, rnd_in(s, 2, 11));
        set_int(c, AK_MANTISSA_BITS, rnd_in(s, 0, 30));
    }
    if (result_type(c, dtype) == DT_INVALID)
        return false;
    c->rel = dtype_is_complex(dtype) ? (dtype == DT_C64 ? 1e-5 : 1e-10)
             : dtype == DT_F64       ? 1e-9
                                     : 0;
    char name[128];
    snprintf(name, sizeof name, "%s %s %lld", hlo_op_rows[op].name, dtype_row(dtype)->name,
             (long long)n);
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
            for (int v = 0; v < variants && dtype_bytes(d) && d != DT_INDEX && is_defined(op, d, v);
                 v++)
                found[d] += elementwise_case(s, op, d, v % 2 ? 37 : 700, v) && v == 0;
    }
    if (found[DT_F32] < 45 || found[DT_BF16] < 45 || found[DT_I32] < 20 || found[DT_C64] < 25 ||
        found[DT_I4] < 20)
        case_fail(s, "elementwise", "ops with kernels: f32 %d bf16 %d i32 %d c64 %d i4 %d",
                  found[DT_F32], found[DT_BF16], found[DT_I32], found[DT_C64], found[DT_I4]);
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
            snprintf(name, sizeof name, "convert %s to %s", dtype_row(from)->name,
                     dtype_row(to)->name);
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

// --- movement ----------------------------------------------------------------------------------

static int any_type(Suite *s) {
    static const uint8_t types[] = {DT_I1,  DT_I4,  DT_I16,  DT_F32, DT_BF16,
                                    DT_I64, DT_F64, DT_C128, DT_UI32};
    return types[rnd(s) % sizeof types];
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
    } rows[] = {
        {DT_F32, DT_UI32, 2, 2, {3, 5}, {3, 5}},    {DT_F32, DT_UI8, 2, 3, {3, 5}, {3, 5, 4}},
        {DT_UI16, DT_F64, 3, 2, {2, 3, 4}, {2, 3}}, {DT_I4, DT_UI4, 1, 1, {9}, {9}},
        {DT_UI32, DT_F32, 1, 1, {70001}, {70001}},  {DT_BF16, DT_I16, 1, 1, {0}, {0}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Case *c = case_make(s, HLO_BITCAST_CONVERT);
        add_in(s, c, rows[i].from, rows[i].rank_in, rows[i].in, true);
        add_out(c, rows[i].to, rows[i].rank_out, rows[i].out);
        c->exact = true;
        need(s, c, "bitcast_convert");
    }
    report(s, "bitcast_convert", before);
}

// --- gather and scatter ------------------------------------------------------------------------

typedef struct IndexCase { // one set of dimension numbers, for both directions
    const char *name;
    int rank, irank, wrank;
    int64_t operand[4], indices[4], windows[4];
    int noffset, ninserted, nbatch, nmap;
    int64_t offset[3], inserted[3], batch[2], ibatch[2], map[3], vec, sizes[4];
} IndexCase;

static const IndexCase index_cases[] = {
    {.name = "rows",
     .rank = 2,
     .irank = 2,
     .wrank = 2,
     .operand = {50, 130},
     .indices = {300, 1},
     .windows = {300, 130},
     .noffset = 1,
     .offset = {1},
     .ninserted = 1,
     .inserted = {0},
     .nmap = 1,
     .map = {0},
     .vec = 1,
     .sizes = {1, 130}},
    {.name = "implicit vector",
     .rank = 1,
     .irank = 2,
     .wrank = 2,
     .operand = {20},
     .indices = {4, 9},
     .windows = {4, 9},
     .ninserted = 1,
     .inserted = {0},
     .nmap = 1,
     .map = {0},
     .vec = 2,
     .sizes = {1}},
    {.name = "columns",
     .rank = 2,
     .irank = 2,
     .wrank = 2,
     .operand = {6, 11},
     .indices = {7, 1},
     .windows = {6, 7},
     .noffset = 1,
     .offset = {0},
     .ninserted = 1,
     .inserted = {1},
     .nmap = 1,
     .map = {1},
     .vec = 1,
     .sizes = {6, 1}},
    {.name = "windows",
     .rank = 3,
     .irank = 2,
     .wrank = 4,
     .operand = {5, 6, 7},
     .indices = {3, 9},
     .windows = {9, 2, 3, 7},
     .noffset = 3,
     .offset = {1, 2, 3},
     .nmap = 3,
     .map = {2, 0, 1},
     .vec = 0,
     .sizes = {2, 3, 7}},
    {.name = "batched",
     .rank = 3,
     .irank = 3,
     .wrank = 3,
     .operand = {4, 9, 5},
     .indices = {4, 6, 1},
     .windows = {4, 6, 5},
     .noffset = 1,
     .offset = {2},
     .ninserted = 1,
     .inserted = {1},
     .nbatch = 1,
     .batch = {0},
     .ibatch = {0},
     .nmap = 1,
     .map = {1},
     .vec = 2,
     .sizes = {1, 1, 5}},
    {.name = "points",
     .rank = 2,
     .irank = 2,
     .wrank = 1,
     .operand = {8, 9},
     .indices = {40, 2},
     .windows = {40},
     .ninserted = 2,
     .inserted = {0, 1},
     .nmap = 2,
     .map = {1, 0},
     .vec = 1,
     .sizes = {1, 1}},
    {.name = "nothing",
     .rank = 2,
     .irank = 2,
     .wrank = 2,
     .operand = {3, 4},
     .indices = {0, 1},
     .windows = {0, 4},
     .noffset = 1,
     .offset = {1},
     .ninserted = 1,
     .inserted = {0},
     .nmap = 1,
     .map = {0},
     .vec = 1,
     .sizes = {1, 4}},
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
    KStep twice[2] = {{.op = HLO_MULTIPLY, .dst = 2, .src = {0, 1}},
                      {.op = HLO_SUBTRACT, .dst = 3, .src = {2, 1}}};
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

int main(int argc, char **argv) {
    static TestFn *const tests[] = {test_vmath, test_tanh_bf16, test_elementwise, test_convert, test_scalars,
                                    test_move,  test_bitcast,     test_index};
    return suite_run(argc, argv, "gp_test", tests, sizeof tests / sizeof *tests);
}
