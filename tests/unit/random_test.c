// SPDX-License-Identifier: Apache-2.0
// random_test.c — random programs: chip against evaluator.
//
// Each program (tests/random/gen.h) runs on the evaluator, and on the chip with results in memory of their
// own and with results in place of their arguments, with one thread and with several, with the best host
// kernels and with the portable ones. The chip must agree with itself to the bit, and with the evaluator
// exactly where the program says so, else within the tolerance table.
//   random_test [PROGRAMS [SEED]]        a failure prints the seed and leaves the program in random_fail.mlir
//   random_test write FOLDER COUNT SEED  programs, inputs and the chip's results as files, for other tools
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/npy.h"
#include "hlo/eval.h"
#include "hlo/tol.h"
#include "otrn.h"
#include "read/read.h"
#include "tests/random/gen.c" // one object for each test: the generator comes along

#define DATA_BYTES (1u << 16) // of one argument, more than any shape of gen.c

typedef struct Data {
    _Alignas(64) uint8_t at[GEN_RESULTS_MAX][DATA_BYTES];
} Data;

static size_t result_bytes(const Gen *g, int i) {
    return (size_t)gen_elems(&g->results[i]) * dtype_bytes(g->results[i].dtype);
}

static bool run_eval(const Gen *g, Data *in, Data *want, otrn_error *err) {
    Ctx ctx = {0};
    Arena arena;
    arena_init(&arena, &ctx);
    Arena *volatile keep = &arena;
    jmp_buf here;
    volatile bool ok = CTX_TRY(&ctx, here);
    if (ok) {
        Hlo *h = read_text(&ctx, keep, "random", g->text, g->n);
        hlo_verify(h);
        HloFunc *f = hlo_main(h);
        Tensor args[GEN_ARGS_MAX], results[GEN_RESULTS_MAX];
        for (int i = 0; i < g->nargs; i++)
            args[i] = (Tensor){h->values.at[h->regions.at[f->body].args + (ValueId)i].type, in->at[i]};
        eval_func(h, keep, f, args, results);
        for (int i = 0; i < g->nresults; i++)
            memcpy(want->at[i], results[i].data, result_bytes(g, i));
    } else {
        *err = ctx.err;
    }
    arena_fini(keep);
    return ok;
}

static bool run_chip(otrn_env *env, const Gen *g, const Data *in, bool in_place, Data *got, otrn_error *err) {
    static Data args;
    otrn_exe *exe;
    if (otrn_compile(env, g->text, g->n, "random", &exe, err))
        return false;
    args = *in;
    const void *arg[GEN_ARGS_MAX];
    void *res[GEN_RESULTS_MAX];
    for (int i = 0; i < g->nargs; i++)
        arg[i] = args.at[i];
    for (int i = 0; i < g->nresults; i++) {
        int64_t alias = otrn_exe_result_alias(exe, (size_t)i);
        res[i] = in_place && alias >= 0 ? (void *)args.at[alias] : got->at[i];
    }
    bool ok = otrn_execute(exe, arg, res, err) == OTRN_OK;
    for (int i = 0; ok && i < g->nresults; i++)
        if (res[i] != got->at[i])
            memcpy(got->at[i], res[i], result_bytes(g, i));
    otrn_exe_free(exe);
    return ok;
}

// Equal numbers, or both NaN: which NaN, and the sign of a zero out of max or min, are free.
static bool same_number(int dtype, const uint8_t *a, const uint8_t *b) {
    if (!dtype_is_float(dtype))
        return !memcmp(a, b, dtype_bytes(dtype));
    double x = dtype_to_f64(dtype, a), y = dtype_to_f64(dtype, b);
    return x == y || (x != x && y != y);
}

static const char *compare(const Gen *g, const Data *want, const Data *got, bool bits) {
    static char why[160];
    for (int i = 0; i < g->nresults; i++) {
        size_t n = (size_t)gen_elems(&g->results[i]), bytes = dtype_bytes(g->results[i].dtype), bad = 0;
        bool ok = true;
        if (bits)
            ok = !memcmp(want->at[i], got->at[i], n * bytes);
        else if (!g->exact[i])
            ok = tol_close(g->results[i].dtype, got->at[i], want->at[i], n, &bad);
        else
            for (; bad < n && ok; bad += ok)
                ok = same_number(g->results[i].dtype, want->at[i] + bad * bytes, got->at[i] + bad * bytes);
        if (ok)
            continue;
        snprintf(why, sizeof why, "result %d (%s%s) differs%s at element %zu", i,
                 dtype_row(g->results[i].dtype)->name, g->exact[i] ? ", exact" : "",
                 bits ? " between two runs of the chip" : "", bad);
        return why;
    }
    return NULL;
}

static void keep_program(const Gen *g, const char *path) {
    FILE *f = fopen(path, "w");
    if (f) {
        fwrite(g->text, 1, g->n, f);
        fclose(f);
    }
}

static bool one_program(otrn_env *const envs[2], Gen *g, uint64_t seed) {
    static Data in, want, first, got;
    gen_program(g, seed);
    for (int i = 0; i < g->nargs; i++)
        gen_fill(g, &g->args[i], in.at[i]);
    otrn_error err = {0};
    const char *why = NULL;
    if (!run_eval(g, &in, &want, &err) || !run_chip(envs[0], g, &in, false, &first, &err))
        why = err.text;
    if (!why)
        why = compare(g, &want, &first, false);
    for (int k = 0; k < 2 && !why; k++)
        why = !run_chip(envs[k], g, &in, true, &got, &err) ? err.text : compare(g, &first, &got, true);
    if (!why)
        return true;
    printf("FAIL random program, seed %llu: %s\n", (unsigned long long)seed, why);
    keep_program(g, "random_fail.mlir");
    printf("  the program is in random_fail.mlir\n");
    return false;
}

static bool write_npy(const GenType *t, const char *path, const void *data) {
    Ctx ctx = {0};
    jmp_buf here;
    if (!CTX_TRY(&ctx, here)) {
        printf("FAIL %s\n", ctx.err.text);
        return false;
    }
    npy_write(&ctx, path, t->dtype, t->rank, t->dims, data);
    return true;
}

// N.mlir, N_in_K.npy and N_out_K.npy (N_out_K_close.npy where only nearness can be asked for).
static bool write_program(otrn_env *env, Gen *g, const char *folder, long number, uint64_t seed) {
    static Data in, got;
    otrn_error err = {0};
    gen_program(g, seed);
    for (int i = 0; i < g->nargs; i++)
        gen_fill(g, &g->args[i], in.at[i]);
    if (!run_chip(env, g, &in, false, &got, &err)) {
        printf("FAIL seed %llu: %s\n", (unsigned long long)seed, err.text);
        return false;
    }
    char path[512];
    snprintf(path, sizeof path, "%s/%ld.mlir", folder, number);
    keep_program(g, path);
    bool ok = true;
    for (int i = 0; i < g->nargs && ok; i++) {
        snprintf(path, sizeof path, "%s/%ld_in_%d.npy", folder, number, i);
        ok = write_npy(&g->args[i], path, in.at[i]);
    }
    for (int i = 0; i < g->nresults && ok; i++) {
        snprintf(path, sizeof path, "%s/%ld_out_%d%s.npy", folder, number, i, g->exact[i] ? "" : "_close");
        ok = write_npy(&g->results[i], path, got.at[i]);
    }
    return ok;
}

int main(int argc, char **argv) {
    bool write = argc == 5 && !strcmp(argv[1], "write");
    long count = write ? atol(argv[3]) : argc > 1 ? atol(argv[1]) : 400;
    uint64_t seed = write ? strtoull(argv[4], NULL, 0) : argc > 2 ? strtoull(argv[2], NULL, 0) : 20261;
    otrn_option options[2][3] = {{{"threads", "1"}, {"cache", "off"}, {"host", "auto"}},
                                 {{"threads", "3"}, {"cache", "off"}, {"host", "portable"}}};
    otrn_env *envs[2];
    otrn_error err;
    Gen g = {.text = malloc(GEN_TEXT_MAX)};
    for (int i = 0; i < 2; i++)
        if (!g.text || otrn_open(options[i], 3, &envs[i], &err)) {
            printf("FAIL open: %s\n", err.text);
            return 1;
        }
    bool ok = true;
    for (long i = 0; i < count && ok; i++)
        ok = write ? write_program(envs[0], &g, argv[2], i, seed + (uint64_t)i)
                   : one_program(envs, &g, seed + (uint64_t)i);
    if (ok)
        printf("ok %ld random programs from seed %llu\n", count, (unsigned long long)seed);
    otrn_close(envs[0]);
    otrn_close(envs[1]);
    gen_fini(&g);
    free(g.text);
    return !ok;
}
