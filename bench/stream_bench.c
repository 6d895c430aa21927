// SPDX-License-Identifier: Apache-2.0
// stream_bench.c — whole products through the road, DMA in to DMA out, beside OpenBLAS in the same rounds.
//
// Every round runs each contestant once. A contestant's figure is the best decile of its samples; what is
// judged are ratios of such figures in one run. One thread is timed by its own CPU time, two by the clock on
// the wall. OpenBLAS is opened at run time, with the core type it should have detected; OPENBLAS_CORETYPE
// and OTRN_BENCH_BLAS (a library's path) override.
// Usage: stream_bench [rounds [m n k]]
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "bench/probe.h"
#include "otrn.h"

static void stop(const otrn_error *err) {
    char text[2048];
    otrn_error_print(err, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    exit(1);
}

// --- OpenBLAS ------------------------------------------------------------------------------------

typedef void SgemmFn(const char *ta, const char *tb, const int *m, const int *n, const int *k,
                     const float *alpha, const float *a, const int *lda, const float *b,
                     const int *ldb, const float *beta, float *c, const int *ldc);

typedef struct Blas {
    SgemmFn *sgemm;
    void (*set_threads)(int);
} Blas;

// As the runtime chooses for products of this type: tiles and pairs only where they pay.
static HostLevel level_for(bool narrow) {
    HostWays ways = host_ways();
    return (HostLevel)host_choose(&ways, HOST_COUNT, narrow);
}

static Blas blas_open(void) {
    const char *path = getenv("OTRN_BENCH_BLAS");
    setenv("OPENBLAS_CORETYPE", level_for(false) >= HOST_AVX512 ? "SkylakeX" : "Haswell", 0);
    void *lib = dlopen(path ? path : "libopenblas.so.0", RTLD_NOW);
    Blas b = {0};
    if (!lib)
        return b;
    char *(*core)(void) = (char *(*)(void))dlsym(lib, "openblas_get_corename");
    b.set_threads = (void (*)(int))dlsym(lib, "openblas_set_num_threads");
    b.sgemm = (SgemmFn *)dlsym(lib, "sgemm_");
    if (!b.set_threads || !core)
        b.sgemm = NULL;
    else
        printf("OpenBLAS core type %s\n", core());
    return b;
}

// --- contestants ---------------------------------------------------------------------------------

typedef struct Shape {
    int m, n, k;
} Shape;

typedef struct Contestant {
    char name[48];
    const char *type; // NULL: OpenBLAS, fp32
    int threads;
    bool absent;
    otrn_env *env;
    otrn_exe *exe;
    Samples s;
} Contestant;

static otrn_exe *product_compile(otrn_env *env, const char *type, Shape s) {
    char program[1024];
    otrn_error err = OTRN_ERROR_INIT;
    otrn_exe *exe;
    snprintf(program, sizeof program,
             "func.func public @main(%%a: tensor<%dx%dx%s>, %%b: tensor<%dx%dx%s>) -> tensor<%dx%dxf32> {\n"
             "  %%0 = stablehlo.dot_general %%a, %%b, contracting_dims = [1] x [0] : "
             "(tensor<%dx%dx%s>, tensor<%dx%dx%s>) -> tensor<%dx%dxf32>\n"
             "  return %%0 : tensor<%dx%dxf32>\n}\n",
             s.m, s.k, type, s.k, s.n, type, s.m, s.n, s.m, s.k, type, s.k, s.n, type, s.m, s.n, s.m, s.n);
    if (otrn_compile(env, program, strlen(program), "bench", &exe, &err))
        stop(&err);
    return exe;
}

static void contestant_init(Contestant *c, const char *type, int threads, const Blas *blas, Shape s) {
    *c = (Contestant){.type = type, .threads = threads};
    snprintf(c->name, sizeof c->name, "%s %s, %d thread%s", type ? "stream" : "OpenBLAS",
             type ? type : "f32", threads, threads > 1 ? "s" : "");
    c->absent = threads > sysconf(_SC_NPROCESSORS_ONLN) || (!type && !blas->sgemm);
    if (c->absent || !type)
        return;
    char number[16];
    snprintf(number, sizeof number, "%d", threads);
    otrn_option options[] = {{"threads", number}, {"cache", "off"}};
    otrn_error err = OTRN_ERROR_INIT;
    if (otrn_open(options, 2, &c->env, &err))
        stop(&err);
    c->exe = product_compile(c->env, type, s);
}

static void contestant_run(Contestant *c, const Blas *blas, Shape s, void *a, void *b, float *out) {
    otrn_error err = OTRN_ERROR_INIT;
    float one = 1, zero = 0;
    if (!c->type) // row-major a b = column-major b a
        blas->sgemm("N", "N", &s.n, &s.m, &s.k, &one, b, &s.n, a, &s.k, &zero, out, &s.n);
    else {
        const otrn_buffer args[] = {{a, otrn_type_bytes(otrn_exe_arg_type(c->exe, 0))},
                                    {b, otrn_type_bytes(otrn_exe_arg_type(c->exe, 1))}};
        const otrn_buffer result = {out, otrn_type_bytes(otrn_exe_result_type(c->exe, 0))};
        if (otrn_execute(c->exe, args, 2, &result, 1, &err))
            stop(&err);
    }
}

static void contestant_sample(Contestant *c, const Blas *blas, Shape s, void *a, void *b, float *out,
                              bool keep) {
    if (c->absent)
        return;
    if (!c->type) {
        if (c->threads > 1)
            usleep(2000); // workers of the one before have gone to sleep
        blas->set_threads(c->threads);
    }
    bench_clock = c->threads > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
    double begin = now_s();
    contestant_run(c, blas, s, a, b, out);
    double seconds = now_s() - begin;
    bench_clock = CLOCK_THREAD_CPUTIME_ID;
    if (keep)
        samples_add(&c->s, 2.0 * s.m * s.n * s.k, seconds, probe_rate(level_for(false)));
}

// --- bars ----------------------------------------------------------------------------------------

static void bar_streams(Contestant *top, Contestant *base, double wanted, const char *why_absent) {
    if (top->absent || base->absent) {
        printf("bar: %s against %s: skipped, %s\n", top->name, base->name, why_absent);
        return;
    }
    char name[112];
    snprintf(name, sizeof name, "%s / %s", top->name, base->name);
    bar_print(name, samples_best(&top->s) / samples_best(&base->s), wanted);
}

enum { BLAS_1, F32_1, BF16_1, F32_2, BF16_2, BLAS_2, CONTESTANTS };

static void bars_print(Contestant *c) {
    bar_streams(&c[F32_1], &c[BLAS_1], 0.9, "no libopenblas.so.0 here");
    bar_streams(&c[F32_2], &c[BLAS_2], 0.9, "no libopenblas.so.0 or one core only");
    if (level_for(true) == HOST_AMX)
        bar_streams(&c[BF16_1], &c[F32_1], 3, "");
    else
        printf("bar: AMX stream bf16 at least 3 times f32: skipped, this host has no AMX\n");
}

static void *operand_make(size_t count) {
    float *p = aligned_alloc(64, (count * 4 + 63) / 64 * 64);
    if (!p)
        exit(1);
    memset(p, 0x3c, count * 4); // small normal numbers in either type
    return p;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 31;
    Shape s = {1024, 3072, 768};
    if (argc == 5)
        s = (Shape){atoi(argv[2]), atoi(argv[3]), atoi(argv[4])};
    if (rounds < 1 || rounds > SAMPLES_MAX || s.m < 1 || s.n < 1 || s.k < 1) {
        fprintf(stderr, "usage: stream_bench [rounds [m n k]]\n");
        return 2;
    }
    printf("stream %dx%dx%d, %d rounds; best decile, median\n", s.m, s.n, s.k, rounds);
    Blas blas = blas_open();
    static Contestant c[CONTESTANTS];
    contestant_init(&c[BLAS_1], NULL, 1, &blas, s);
    contestant_init(&c[F32_1], "f32", 1, &blas, s);
    contestant_init(&c[BF16_1], "bf16", 1, &blas, s);
    contestant_init(&c[F32_2], "f32", 2, &blas, s);
    contestant_init(&c[BF16_2], "bf16", 2, &blas, s);
    contestant_init(&c[BLAS_2], NULL, 2, &blas, s);
    void *a = operand_make((size_t)s.m * s.k), *b = operand_make((size_t)s.k * s.n);
    float *out = operand_make((size_t)s.m * s.n);
    for (int i = -2; i < rounds; i++) { // two rounds to touch the memory
        for (int j = 0; j < CONTESTANTS; j++)
            contestant_sample(&c[j], &blas, s, a, b, out, i >= 0);
        usleep(30000); // OpenBLAS's workers stay awake for a while
    }
    for (int j = 0; j < CONTESTANTS; j++)
        if (!c[j].absent)
            samples_print(&c[j].s, c[j].name);
    bars_print(c);
    for (int j = 0; j < CONTESTANTS; j++)
        if (c[j].env)
            otrn_exe_free(c[j].exe), otrn_close(c[j].env);
    free(a), free(b), free(out);
    return 0;
}
