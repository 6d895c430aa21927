// SPDX-License-Identifier: Apache-2.0
// stream_bench.c — a whole product through the road: compiled, loaded, executed instruction by instruction.
//
// Prints the share of an FMA probe of the best vector width, measured alternately in the same run, one
// thread. The bar is 0.6 for a 1024 x 1024 x 1024 product in fp32.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/probe.h"
#include "otrn.h"

#define ROUNDS 41

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void stop(const otrn_error *err) {
    char text[2048];
    otrn_error_print(err, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    exit(1);
}

static double measure(otrn_env *env, const char *type, int elem_bytes, int n) {
    char program[1024];
    snprintf(program, sizeof program,
             "func.func public @main(%%a: tensor<%dx%dx%s>, %%b: tensor<%dx%dx%s>) -> tensor<%dx%dxf32> {\n"
             "  %%0 = stablehlo.dot_general %%a, %%b, contracting_dims = [1] x [0] : "
             "(tensor<%dx%dx%s>, tensor<%dx%dx%s>) -> tensor<%dx%dxf32>\n"
             "  return %%0 : tensor<%dx%dxf32>\n}\n",
             n, n, type, n, n, type, n, n, n, n, type, n, n, type, n, n, n, n);
    otrn_error err;
    otrn_exe *exe;
    if (otrn_compile(env, program, strlen(program), "bench", &exe, &err))
        stop(&err);
    size_t in = (size_t)n * (size_t)n * (size_t)elem_bytes, out = (size_t)n * (size_t)n * 4;
    void *a = aligned_alloc(64, in), *b = aligned_alloc(64, in), *c = aligned_alloc(64, out);
    if (!a || !b || !c)
        exit(1);
    memset(a, 0x3c, in); // small normal numbers in fp32 and bf16 alike
    memset(b, 0x3c, in);
    const void *args[] = {a, b};
    void *results[] = {c};
    double ratio[ROUNDS];
    for (int i = -2; i < ROUNDS; i++) {
        double probe = probe_gflops();
        double begin = probe_seconds();
        if (otrn_execute(exe, args, results, &err))
            stop(&err);
        double gflops = 2.0 * n * n * n / (probe_seconds() - begin) * 1e-9;
        if (i >= 0)
            ratio[i] = gflops / probe;
    }
    qsort(ratio, ROUNDS, sizeof *ratio, by_value);
    otrn_exe_free(exe);
    free(a), free(b), free(c);
    return ratio[ROUNDS / 2];
}

int main(void) {
    otrn_option options[] = {{"threads", "1"}, {"cache", "off"}};
    otrn_env *env;
    otrn_error err;
    if (otrn_open(options, 2, &env, &err))
        stop(&err);
    int sizes[] = {256, 1024};
    for (int i = 0; i < 2; i++) {
        printf("stream %4d^3 fp32  %.2f of the FMA probe%s\n", sizes[i], measure(env, "f32", 4, sizes[i]),
               sizes[i] == 1024 ? "  (bar 0.60)" : "");
        printf("stream %4d^3 bf16  %.2f of the FMA probe\n", sizes[i], measure(env, "bf16", 2, sizes[i]));
    }
    otrn_close(env);
    return 0;
}
