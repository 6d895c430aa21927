// SPDX-License-Identifier: Apache-2.0
// random_test.c — random programs: chip against evaluator.
//
// Each program (tests/random/gen.h) runs on the evaluator, and on the chip with results in memory of their
// own and with results in place of their arguments, with one thread and with several, with the best host
// kernels and with the portable ones, on one core and on two, by turns for each chip. The chip must agree with
// itself to the bit, and with the evaluator
// exactly where the program says so, else within the tolerance table.
//   random_test                              400, always the same, and 200 of loops, of the time's seed
//   random_test PROGRAMS [SEED]              a failure prints the seed and leaves the program in random_fail_SEED.mlir
//   random_test minutes=M [SEED [loops]]     as many as fit, or of loops only; every difference is reduced by itself with `otrn reduce`
//   random_test differs FILE SEED [exact]    succeeds when evaluator and chip differ on this program
//   random_test write FOLDER COUNT SEED      programs, inputs and the chip's results as files, for other tools
//   random_test run FILE SEED FOLDER         the same for a given program
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/npy.h"
#include "hlo/eval.h"
#include "hlo/tol.h"
#include "otrn.h"
#include "pass/pass.h"
#include "read/read.h"
#include "tests/unit/run_sized.h"
#include "tests/random/gen.c" // one object for each test: the generator comes along

#define DATA_BYTES (1u << 19) // of one argument, more than any shape of gen.c

#define CHIPS 3

typedef struct Data {
    _Alignas(64) uint8_t at[GEN_RESULTS_MAX][DATA_BYTES];
} Data;

static size_t result_bytes(const Gen *g, int i) {
    return (size_t)gen_elems(&g->results[i]) * dtype_bytes(g->results[i].dtype);
}

static bool run_eval(const Gen *g, Data *in, Data *want, otrn_error *err) {
    Ctx ctx = {0};
    Arena arena, scratch;
    arena_init(&arena, &ctx);
    arena_init(&scratch, &ctx);
    Arena *volatile keep = &arena, *volatile keep_scratch = &scratch;
    jmp_buf here;
    volatile bool ok = CTX_TRY(&ctx, here);
    if (ok) {
        Hlo *h = read_text(&ctx, keep, "random", g->text, g->n);
        hlo_verify(h);
        pass_settle(&(Compile){.ctx = &ctx, .arena = keep, .scratch = keep_scratch, .hlo = h});
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
    arena_fini(keep_scratch);
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
    bool ok = run_sized(exe, arg, res, err) == OTRN_OK;
    for (int i = 0; ok && i < g->nresults; i++)
        if (res[i] != got->at[i])
            memcpy(got->at[i], res[i], result_bytes(g, i));
    otrn_exe_free(exe);
    return ok;
}

// Equal numbers, or both NaN: which NaN, and the sign of a zero out of max or min, are free.
static bool same_number(int dtype, const uint8_t *a, const uint8_t *b) {
    if (dtype == DT_C64)
        return same_number(DT_F32, a, b) && same_number(DT_F32, a + 4, b + 4);
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

// Runs everywhere; NULL, or what differs.
static const char *difference(otrn_env *const envs[2], const Gen *g, Data *in, bool *exact) {
    static Data want, first, got;
    static otrn_error err = OTRN_ERROR_INIT;
    const char *why = NULL;
    if (!run_eval(g, in, &want, &err) || !run_chip(envs[0], g, in, false, &first, &err))
        return err.text;
    why = compare(g, &want, &first, false);
    *exact = why && strstr(why, "exact");
    for (int k = 0; k < 2 && !why; k++)
        why = !run_chip(envs[k], g, in, true, &got, &err) ? err.text : compare(g, &first, &got, true);
    return why;
}

// Argument i of program `seed`: a reduced program gets the same numbers.
static void fill(Gen *g, uint64_t seed, int i, Data *in) {
    g->rng = seed * 0x2545f4914f6cdd1du + (uint64_t)i * 0x9e3779b97f4a7c15u * 4096;
    gen_fill(g, &g->args[i], in->at[i], gen_is_loops(seed));
}

static void make(Gen *g, uint64_t seed, Data *in) {
    gen_program(g, seed);
    for (int i = 0; i < g->nargs; i++)
        fill(g, seed, i, in);
}

// A chip, by turns: with one thread, and with several and programs split over two cores.
typedef otrn_env *Envs[CHIPS][2];

static otrn_env *const *envs_of(const Envs envs, uint64_t seed) { return envs[seed / 4 % CHIPS]; }

static volatile sig_atomic_t at_seed[2]; // of the program under way, for one that ends the test: high and low half

static void ended(int signal_number) {
    fprintf(stderr, "FAIL random program, seed %llu: signal %d\n",
            (unsigned long long)(uint32_t)at_seed[0] << 32 | (uint32_t)at_seed[1], signal_number);
    _exit(128 + signal_number);
}

static bool one_program(const Envs envs, Gen *g, uint64_t seed, char *path, bool *exact) {
    static Data in;
    at_seed[0] = (sig_atomic_t)(seed >> 32), at_seed[1] = (sig_atomic_t)seed;
    make(g, seed, &in);
    const char *why = difference(envs_of(envs, seed), g, &in, exact);
    if (!why)
        return true;
    snprintf(path, 64, "random_fail_%llu.mlir", (unsigned long long)seed);
    keep_program(g, path);
    printf("FAIL random program, seed %llu: %s; %s\n", (unsigned long long)seed, why, path);
    return false;
}

// --- given programs ----------------------------------------------------------------------------------------

static GenType to_gen(const otrn_type *t) {
    GenType out = {.dtype = t->dtype, .rank = t->rank};
    for (int i = 0; i < t->rank && i < GEN_RANK_MAX; i++)
        out.dims[i] = t->dims[i];
    return out;
}

static bool fits(const otrn_type *t) { return t->rank <= GEN_RANK_MAX && otrn_type_bytes(t) <= DATA_BYTES; }

// Reads a program and fills its arguments; false when it is none that the generator could have made.
static bool load_program(otrn_env *env, Gen *g, const char *path, uint64_t seed, Data *in) {
    FILE *f = fopen(path, "rb");
    otrn_error err = OTRN_ERROR_INIT;
    otrn_exe *exe;
    if (!f)
        return false;
    g->n = fread(g->text, 1, GEN_TEXT_MAX, f);
    fclose(f);
    if (otrn_compile(env, g->text, g->n, path, &exe, &err))
        return false;
    size_t nargs = otrn_exe_num_args(exe), nresults = otrn_exe_num_results(exe);
    bool ok = nargs <= GEN_ARGS_MAX && nresults <= GEN_RESULTS_MAX;
    for (size_t i = 0; ok && i < nargs; i++) {
        ok = fits(otrn_exe_arg_type(exe, i));
        g->args[i] = to_gen(otrn_exe_arg_type(exe, i));
        if (ok)
            fill(g, seed, (int)i, in);
    }
    for (size_t i = 0; ok && i < nresults; i++) {
        ok = fits(otrn_exe_result_type(exe, i));
        g->results[i] = to_gen(otrn_exe_result_type(exe, i));
    }
    g->nargs = (int)nargs, g->nresults = (int)nresults;
    otrn_exe_free(exe);
    return ok;
}

static int differs(const Envs envs, Gen *g, const char *path, uint64_t seed, bool exact) {
    static Data in;
    bool was_exact;
    if (!load_program(envs_of(envs, seed)[0], g, path, seed, &in))
        return 1;
    for (int i = 0; i < g->nresults; i++)
        g->exact[i] = exact || !dtype_is_float(g->results[i].dtype);
    return difference(envs_of(envs, seed), g, &in, &was_exact) ? 0 : 1;
}

// Shrinks a failing program with the tool that users have; prints where the small one is.
static void reduce(const char *self, const char *path, uint64_t seed, bool exact) {
    char command[1024], small[80];
    snprintf(small, sizeof small, "%.*s_small.mlir", (int)(strlen(path) - 5), path);
    const char *unit = strstr(self, "/tests/unit/");
    snprintf(command, sizeof command, "%.*s/otrn reduce %s --test='%s differs %%s %llu%s' -o %s >/dev/null 2>&1",
             unit ? (int)(unit - self) : 5, unit ? self : "build", path, self, (unsigned long long)seed, exact ? " exact" : "", small);
    printf(system(command) ? "  not reduced: %s\n" : "  reduced: %s\n", system(NULL) ? small : path);
    fflush(stdout);
}

static int run_minutes(const Envs envs, Gen *g, const char *self, double minutes, uint64_t first, bool loops) {
    time_t begin = time(NULL);
    long programs = 0, different = 0;
    for (uint64_t seed = first; difftime(time(NULL), begin) < 60 * minutes; seed++) {
        char path[64];
        bool exact = false;
        if (loops && !gen_is_loops(seed))
            continue;
        programs++;
        if (one_program(envs, g, seed, path, &exact))
            continue;
        different++;
        reduce(self, path, seed, exact);
    }
    printf("chip and evaluator: %ld programs from seed %llu, %ld differences\n", programs, (unsigned long long)first, different);
    return different > 0;
}

// --- files -------------------------------------------------------------------------------------------------

static bool write_npy(const GenType *t, const char *path, const void *data) {
    Ctx ctx = {0};
    jmp_buf here;
    if (!CTX_TRY(&ctx, here)) {
        printf("FAIL %s\n", ctx.err.text);
        return false;
    }
    bool plain = t->dtype == DT_C64 || dtype_row(t->dtype)->npy[0]; // others travel as bytes; the name has the type
    npy_write(&ctx, path, plain ? t->dtype : DT_UI8, t->rank, t->dims, data);
    return true;
}

// N.mlir, N_in_K_TYPE.npy and N_out_K_TYPE.npy.
static bool write_files(otrn_env *env, const Gen *g, const Data *in, const char *folder, long number) {
    static Data got;
    otrn_error err = OTRN_ERROR_INIT;
    if (!run_chip(env, g, in, false, &got, &err)) {
        printf("FAIL program %ld: %s\n", number, err.text);
        return false;
    }
    char path[512];
    snprintf(path, sizeof path, "%s/%ld.mlir", folder, number);
    keep_program(g, path);
    bool ok = true;
    for (int i = 0; i < g->nargs && ok; i++) {
        snprintf(path, sizeof path, "%s/%ld_in_%d_%s.npy", folder, number, i, dtype_row(g->args[i].dtype)->name);
        ok = write_npy(&g->args[i], path, in->at[i]);
    }
    for (int i = 0; i < g->nresults && ok; i++) {
        snprintf(path, sizeof path, "%s/%ld_out_%d_%s.npy", folder, number, i, dtype_row(g->results[i].dtype)->name);
        ok = write_npy(&g->results[i], path, got.at[i]);
    }
    return ok;
}

static bool write_programs(const Envs envs, Gen *g, const char *folder, long count, uint64_t seed) {
    static Data in;
    bool ok = true;
    g->plain = true;
    for (long i = 0; i < count && ok; i++) {
        make(g, seed + (uint64_t)i, &in);
        ok = write_files(envs_of(envs, seed + (uint64_t)i)[0], g, &in, folder, i);
    }
    return ok;
}

static bool write_given(const Envs envs, Gen *g, const char *path, uint64_t seed, const char *folder) {
    static Data in;
    otrn_env *env = envs_of(envs, seed)[0];
    return load_program(env, g, path, seed, &in) && write_files(env, g, &in, folder, 0);
}

static bool run_count(const Envs envs, Gen *g, long count, uint64_t seed, bool loops) {
    bool ok = true, exact;
    char path[64];
    long done = 0;
    for (uint64_t at = seed; done < count && ok; at++)
        if (!loops || gen_is_loops(at)) {
            ok = one_program(envs, g, at, path, &exact);
            done++;
        }
    if (ok)
        printf("ok %ld random programs%s from seed %llu\n", count, loops ? " of loops" : "", (unsigned long long)seed);
    return ok;
}

static bool open_all(Envs envs, otrn_error *err) {
    static const char *const chips[CHIPS] = {"trn1", "trn2", "trn3"}; // the first has no logical cores of two
    for (int c = 0; c < CHIPS; c++)
        for (int two = 0; two < 2; two++) {
            otrn_option options[] = {{"threads", two ? "3" : "1"}, {"cache", "off"}, {"host", two ? "portable" : "auto"},
                                     {"lnc", two && c ? "2" : "1"}, {"target", chips[c]}};
            if (otrn_open(options, 5, &envs[c][two], err))
                return false;
        }
    return true;
}

int main(int argc, char **argv) {
    Envs envs;
    otrn_error err = OTRN_ERROR_INIT;
    Gen g = {.text = malloc(GEN_TEXT_MAX)};
    signal(SIGABRT, ended), signal(SIGSEGV, ended);
    if (!g.text || !open_all(envs, &err)) {
        printf("FAIL open: %s\n", err.text);
        return 1;
    }
    const char *mode = argc > 1 ? argv[1] : "400";
    int status;
    if (!strcmp(mode, "differs") && argc >= 4)
        status = differs(envs, &g, argv[2], strtoull(argv[3], NULL, 0), argc > 4);
    else if (!strcmp(mode, "write") && argc == 5)
        status = !write_programs(envs, &g, argv[2], atol(argv[3]), strtoull(argv[4], NULL, 0));
    else if (!strcmp(mode, "run") && argc == 5)
        status = !write_given(envs, &g, argv[2], strtoull(argv[3], NULL, 0), argv[4]);
    else if (!strncmp(mode, "minutes=", 8))
        status = run_minutes(envs, &g, argv[0], atof(mode + 8), argc > 2 ? strtoull(argv[2], NULL, 0) : 1,
                             argc > 3 && !strcmp(argv[3], "loops"));
    else
        status = !run_count(envs, &g, atol(mode), argc > 2 ? strtoull(argv[2], NULL, 0) : 20261, false);
    if (argc == 1 && !status) // others each time: a failure prints the seed that repeats it
        status = !run_count(envs, &g, 200, (uint64_t)time(NULL) * 1000, true);
    for (int c = 0; c < CHIPS; c++)
        otrn_close(envs[c][0]), otrn_close(envs[c][1]);
    gen_fini(&g);
    free(g.text);
    return status;
}
