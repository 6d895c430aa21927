// SPDX-License-Identifier: Apache-2.0
// gp_bench.c — hot GpSimd kernels beside a memcpy that moves as many bytes, in the same run.
//
// One line per kernel and size: nanoseconds per element with one thread, and time as a multiple of
// memcpy's for the bytes the kernel reads and writes, with one thread and with all. Small tensors
// lie in the second-level cache, large ones do not fit any.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chip/core/chip.h"

#define MAX_IN 3

typedef struct Bench {
    const char *name;
    Kern k;
    KTensor in[MAX_IN], out[1];
    HloAttr attrs[HLO_MAX_ATTRS];
    KProg region;
    int64_t dims[8][4]; // storage for shapes
    int ndims;
} Bench;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static KTensor tensor(Bench *b, int dtype, int64_t d0,
                      int64_t d1) { // d1 < 0: one axis; d0 < 0: scalar
    int64_t *dims = b->dims[b->ndims++];
    dims[0] = d0, dims[1] = d1;
    int rank = d0 < 0 ? 0 : d1 < 0 ? 1 : 2;
    return (KTensor){.dtype = (uint8_t)dtype,
                     .rank = (uint8_t)rank,
                     .dims = dims,
                     .elems = rank == 0   ? 1
                              : rank == 1 ? d0
                                          : d0 * d1};
}

static void set(Bench *b, HloAttrKey key, HloAttr v) {
    for (int i = 0; i < hlo_op_rows[b->k.op].nattrs; i++)
        if (hlo_op_rows[b->k.op].attrs[i] == key)
            b->attrs[i] = v;
}
static void set_ints(Bench *b, HloAttrKey key, uint32_t n, const int64_t *v) {
    set(b, key, (HloAttr){.kind = HA_INTS, .n = n, .ints = v});
}

static size_t bytes_of(const KTensor *t) { return (size_t)t->elems * dtype_bytes(t->dtype); }

static void *make_data(const KTensor *t,
                       int64_t below) { // values in (0, 1), or indices below a bound
    char *p = aligned_alloc(64, (bytes_of(t) + 127) & ~(size_t)63);
    uint64_t x = 88172645463325252u;
    for (int64_t i = 0; p && i < t->elems; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        char *at = p + i * (int64_t)dtype_bytes(t->dtype);
        if (dtype_is_float(t->dtype))
            dtype_from_f64(t->dtype, at, (double)(x >> 11) * 0x1p-53);
        else
            dtype_from_i64(t->dtype, at, (int64_t)(x >> 33) % (below ? below : 2));
    }
    return p;
}

static double best_of(double budget_s, void (*fn)(void *), void *arg) {
    double best = 1e9, end = now_s() + budget_s;
    for (int i = 0; i < 3 || now_s() < end; i++) {
        double t = now_s();
        fn(arg);
        t = now_s() - t;
        best = t < best ? t : best;
    }
    return best;
}

typedef struct CopyArg {
    char *dst, *src;
    size_t bytes;
} CopyArg;
static void copy_once(void *arg) {
    CopyArg *c = arg;
    memcpy(c->dst, c->src, c->bytes);
    __asm__ volatile("" : : "r"(c->dst) : "memory");
}

typedef struct CallArg {
    GpFn *fn;
    GpCall call;
} CallArg;
static void call_once(void *arg) {
    CallArg *c = arg;
    c->fn(&c->call);
}

static void bench_run(Bench *b, int64_t index_below, Pool *one, Pool *all) {
    void *in[MAX_IN], *out[1];
    size_t traffic = bytes_of(&b->out[0]);
    b->k.attrs = b->attrs, b->k.in = b->in, b->k.out = b->out, b->k.regions = &b->region,
    b->k.nout = 1;
    b->k.nattrs = hlo_op_rows[b->k.op].nattrs;
    for (uint32_t i = 0; i < b->k.nin; i++) {
        in[i] = make_data(&b->in[i], index_below);
        traffic += bytes_of(&b->in[i]);
    }
    out[0] = make_data(&b->out[0], 0);
    CallArg c = {.fn = gp_find(&b->k)};
    if (!c.fn) {
        printf("%-24s no kernel\n", b->name);
        return;
    }
    size_t scratch = gp_scratch_bytes(&b->k, pool_threads(all));
    void *room = aligned_alloc(64, scratch + 64);
    c.call = (GpCall){.k = &b->k, .in = in, .out = out, .level = host_best(), .scratch = room};
    CopyArg copy = {malloc(traffic / 2 + 1), malloc(traffic / 2 + 1), traffic / 2};
    memset(copy.src, 1, copy.bytes);
    memset(copy.dst, 1, copy.bytes);
    double t_copy = best_of(0.03, copy_once, &copy);
    c.call.pool = one;
    double t_one = best_of(0.05, call_once, &c);
    c.call.pool = all;
    double t_all = best_of(0.05, call_once, &c);
    int64_t elems = b->out[0].elems;
    for (uint32_t i = 0; i < b->k.nin; i++)
        elems = b->in[i].elems > elems ? b->in[i].elems : elems;
    printf("%-24s %9lld %8.3f %8.2f %8.2f\n", b->name, (long long)elems,
           t_one * 1e9 / (double)elems, t_one / t_copy, t_all / t_copy);
    for (uint32_t i = 0; i < b->k.nin; i++)
        free(in[i]);
    free(out[0]), free(room), free(copy.src), free(copy.dst);
}

static Bench elementwise(HloOpcode op, int in, int out, int64_t n) {
    Bench b = {.name = hlo_op_rows[op].name,
               .k = {.op = op, .nin = (uint32_t)hlo_op_rows[op].operands}};
    return b.in[0].elems = n, b.in[0].dtype = (uint8_t)in, b.out[0].dtype = (uint8_t)out, b;
}

static void bench_elementwise(HloOpcode op, int in, int out, int64_t n, Pool *one, Pool *all) {
    Bench b = elementwise(op, in, out, n);
    char name[64];
    snprintf(name, sizeof name, "%s %s", hlo_op_rows[op].name, dtype_row(in)->name);
    if (op == HLO_CONVERT)
        snprintf(name, sizeof name, "convert %s %s", dtype_row(in)->name, dtype_row(out)->name);
    b.name = name;
    for (uint32_t i = 0; i < b.k.nin; i++)
        b.in[i] = tensor(&b, op == HLO_SELECT && i == 0 ? DT_I1 : in, n, -1);
    b.out[0] = tensor(&b, out, n, -1);
    set(&b, AK_COMPARISON_DIRECTION, (HloAttr){.kind = HA_ENUM, .i = CMP_GT});
    bench_run(&b, 0, one, all);
}

static const KStep add_step = {.op = HLO_ADD, .dst = 2, .src = {0, 1}},
                   max_step = {.op = HLO_MAXIMUM, .dst = 2, .src = {0, 1}};
static const uint8_t f32_regs[3] = {DT_F32, DT_F32, DT_F32},
                     bf16_regs[3] = {DT_BF16, DT_BF16, DT_BF16};
static const uint16_t out_two[1] = {2};

static KProg body(const KStep *step, const uint8_t *types) {
    return (KProg){.nregs = 3,
                   .ninputs = 2,
                   .nsteps = 1,
                   .nouts = 1,
                   .dtypes = types,
                   .steps = step,
                   .outs = out_two};
}

static void bench_shapes(int64_t rows, int64_t cols, Pool *one, Pool *all) {
    static const int64_t d0[] = {0}, d1[] = {1}, both[] = {0, 1}, turn[] = {1, 0}, start[] = {1, 1},
                         unit[] = {1, 1};
    int64_t sizes[2] = {1, cols}, limit[2] = {rows, cols};
    const struct {
        const char *name;
        HloOpcode op;
        const int64_t *dims;
        int ndims;
        const KStep *step;
    } reduces[] = {{"reduce rows", HLO_REDUCE, d1, 1, &add_step},
                   {"reduce columns", HLO_REDUCE, d0, 1, &add_step},
                   {"reduce all", HLO_REDUCE, both, 2, &add_step},
                   {"reduce rows max", HLO_REDUCE, d1, 1, &max_step}};
    for (size_t i = 0; i < sizeof reduces / sizeof *reduces; i++)
        for (int narrow = 0; narrow < 2; narrow++) {
            int type = narrow ? DT_BF16 : DT_F32;
            char name[64];
            Bench b = {.k = {.op = HLO_REDUCE, .nin = 2, .nregions = 1}};
            snprintf(name, sizeof name, "%s %s", reduces[i].name, dtype_row(type)->name);
            b.name = name;
            b.in[0] = tensor(&b, type, rows, cols), b.in[1] = tensor(&b, type, -1, -1);
            b.out[0] = reduces[i].ndims == 2
                           ? tensor(&b, type, -1, -1)
                           : tensor(&b, type, reduces[i].dims[0] ? rows : cols, -1);
            set_ints(&b, AK_DIMENSIONS, (uint32_t)reduces[i].ndims, reduces[i].dims);
            b.region = body(reduces[i].step, narrow ? bf16_regs : f32_regs);
            bench_run(&b, 0, one, all);
        }
    Bench b = {.name = "transpose f32", .k = {.op = HLO_TRANSPOSE, .nin = 1}};
    b.in[0] = tensor(&b, DT_F32, rows, cols), b.out[0] = tensor(&b, DT_F32, cols, rows);
    set_ints(&b, AK_PERMUTATION, 2, turn);
    bench_run(&b, 0, one, all);
    b = (Bench){.name = "transpose bf16", .k = {.op = HLO_TRANSPOSE, .nin = 1}};
    b.in[0] = tensor(&b, DT_BF16, rows, cols), b.out[0] = tensor(&b, DT_BF16, cols, rows);
    set_ints(&b, AK_PERMUTATION, 2, turn);
    bench_run(&b, 0, one, all);
    b = (Bench){.name = "broadcast row", .k = {.op = HLO_BROADCAST_IN_DIM, .nin = 1}};
    b.in[0] = tensor(&b, DT_F32, cols, -1), b.out[0] = tensor(&b, DT_F32, rows, cols);
    set_ints(&b, AK_BROADCAST_DIMENSIONS, 1, d1);
    bench_run(&b, 0, one, all);
    b = (Bench){.name = "broadcast column", .k = {.op = HLO_BROADCAST_IN_DIM, .nin = 1}};
    b.in[0] = tensor(&b, DT_F32, rows, -1), b.out[0] = tensor(&b, DT_F32, rows, cols);
    set_ints(&b, AK_BROADCAST_DIMENSIONS, 1, d0);
    bench_run(&b, 0, one, all);
    b = (Bench){.name = "slice", .k = {.op = HLO_SLICE, .nin = 1}};
    b.in[0] = tensor(&b, DT_F32, rows, cols), b.out[0] = tensor(&b, DT_F32, rows - 1, cols - 1);
    set_ints(&b, AK_START_INDICES, 2, start), set_ints(&b, AK_LIMIT_INDICES, 2, limit),
        set_ints(&b, AK_STRIDES, 2, unit);
    bench_run(&b, 0, one, all);
    b = (Bench){.name = "iota", .k = {.op = HLO_IOTA}};
    b.out[0] = tensor(&b, DT_I32, rows, cols);
    set(&b, AK_IOTA_DIMENSION, (HloAttr){.kind = HA_INT, .i = 1});
    bench_run(&b, 0, one, all);
    b = (Bench){.name = "gather rows", .k = {.op = HLO_GATHER, .nin = 2}};
    b.in[0] = tensor(&b, DT_F32, rows, cols), b.in[1] = tensor(&b, DT_I32, rows, 1),
    b.out[0] = tensor(&b, DT_F32, rows, cols);
    set_ints(&b, AK_OFFSET_DIMS, 1, d1), set_ints(&b, AK_COLLAPSED_SLICE_DIMS, 1, d0),
        set_ints(&b, AK_START_INDEX_MAP, 1, d0);
    set(&b, AK_INDEX_VECTOR_DIM, (HloAttr){.kind = HA_INT, .i = 1}),
        set_ints(&b, AK_SLICE_SIZES, 2, sizes);
    bench_run(&b, rows, one, all);
    b = (Bench){.name = "scatter add rows", .k = {.op = HLO_SCATTER, .nin = 3, .nregions = 1}};
    b.in[0] = tensor(&b, DT_F32, rows, cols), b.in[1] = tensor(&b, DT_I32, rows, 1),
    b.in[2] = tensor(&b, DT_F32, rows, cols);
    b.out[0] = tensor(&b, DT_F32, rows, cols);
    set_ints(&b, AK_UPDATE_WINDOW_DIMS, 1, d1), set_ints(&b, AK_INSERTED_WINDOW_DIMS, 1, d0);
    set_ints(&b, AK_SCATTER_DIMS_TO_OPERAND_DIMS, 1, d0),
        set(&b, AK_INDEX_VECTOR_DIM, (HloAttr){.kind = HA_INT, .i = 1});
    b.region = body(&add_step, f32_regs);
    bench_run(&b, rows, one, all);
}

int main(void) {
    static const struct {
        HloOpcode op;
        uint8_t in, out;
    } rows[] = {{HLO_ADD, DT_F32, DT_F32},         {HLO_MULTIPLY, DT_F32, DT_F32},
                {HLO_DIVIDE, DT_F32, DT_F32},      {HLO_MAXIMUM, DT_F32, DT_F32},
                {HLO_SELECT, DT_F32, DT_F32},      {HLO_COMPARE, DT_F32, DT_I1},
                {HLO_EXPONENTIAL, DT_F32, DT_F32}, {HLO_LOG, DT_F32, DT_F32},
                {HLO_TANH, DT_F32, DT_F32},        {HLO_LOGISTIC, DT_F32, DT_F32},
                {HLO_SQRT, DT_F32, DT_F32},        {HLO_RSQRT, DT_F32, DT_F32},
                {HLO_POWER, DT_F32, DT_F32},       {HLO_SINE, DT_F32, DT_F32},
                {HLO_CHLO_ERF, DT_F32, DT_F32},    {HLO_ADD, DT_BF16, DT_BF16},
                {HLO_MULTIPLY, DT_BF16, DT_BF16},  {HLO_TANH, DT_BF16, DT_BF16},
                {HLO_ADD, DT_F16, DT_F16},         {HLO_CONVERT, DT_F32, DT_BF16},
                {HLO_CONVERT, DT_BF16, DT_F32},    {HLO_CONVERT, DT_I32, DT_F32},
                {HLO_CONVERT, DT_F32, DT_I32},     {HLO_CONVERT, DT_I1, DT_F32},
                {HLO_XOR, DT_UI32, DT_UI32},       {HLO_SHIFT_LEFT, DT_UI32, DT_UI32},
                {HLO_ADD, DT_UI32, DT_UI32}};
    Pool *one = pool_make(1), *all = pool_make(0);
    printf("GpSimd kernels, %s, %d threads; times are multiples of memcpy of the same bytes, one "
           "thread\n",
           host_name(host_best()), pool_threads(all));
    printf("%-24s %9s %8s %8s %8s\n", "kernel", "elements", "ns/elem", "1", "all");
    for (int large = 0; large < 2; large++) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            bench_elementwise(rows[i].op, rows[i].in, rows[i].out, large ? 8 << 20 : 64 << 10, one,
                              all);
        bench_shapes(large ? 8192 : 128, large ? 1024 : 768, one, all);
    }
    pool_free(one);
    pool_free(all);
    return 0;
}
