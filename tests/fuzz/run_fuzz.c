// SPDX-License-Identifier: Apache-2.0
// run_fuzz.c — damaged programs down the whole road: reader, verifier, passes, tiles, chip, and the evaluator.
//
// What the verifier accepts must compile and run, or be refused with an error that is not our own mistake. Loops may be
// endless and windows huge in a valid program, so those are only compiled. Arguments are arbitrary bytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/eval.h"
#include "otrn.h"
#include "pass/pass.h"
#include "read/read.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/run_sized.h"

#define ELEMS_MAX 2048 // of a tensor in a program that is run
#define INT_MAX_RUN 64 // of a number in an attribute of such a program
#define ARGS_MAX 16

const char *const fuzz_seeds[] = {"tests/road", "tests/hlo", "tests/pass", "tests/fuzz/data", NULL};

static bool small_attr(const HloAttr *a) {
    if (a->kind == HA_INT)
        return a->i >= -INT_MAX_RUN && a->i <= INT_MAX_RUN;
    if (a->kind == HA_INTS || a->kind == HA_INTS2)
        for (uint32_t i = 0; i < a->n; i++)
            if (a->ints[i] < -INT_MAX_RUN || a->ints[i] > INT_MAX_RUN)
                return false;
    return true;
}

static bool is_small(const Hlo *h) {
    for (TypeId t = 1; t < h->types.n; t++)
        if (h->types.at[t].kind == HT_TENSOR && !h->types.at[t].dynamic && h->types.at[t].elems > ELEMS_MAX)
            return false;
    for (OpId id = 1; id < h->ops.n; id++) {
        const HloOp *op = hlo_at(h, id);
        if (op->code == HLO_WHILE || op->code == HLO_INTERPRETER_RUN_PARALLEL)
            return false;
        for (uint32_t i = 0; i < hlo_row(op)->nattrs; i++)
            if (!small_attr(&op->attrs[i]))
                return false;
    }
    return true;
}

static void fill(uint8_t *p, size_t n, uint64_t key) {
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(key >> (i % 61)) & (i % 4 == 3 ? 0x41 : 0xff); // floats of all sizes, small integers too
}

static void mistake(const otrn_error *err) {
    if (err->code != OTRN_INTERNAL)
        return;
    fprintf(stderr, "\n%s\n", err->text);
    abort();
}

// Compiles; runs when `run`. The program's text decides the arguments.
static void on_chip(otrn_env *env, Arena *a, const uint8_t *data, size_t size, bool run) {
    otrn_error err = OTRN_ERROR_INIT;
    otrn_exe *exe;
    if (otrn_compile(env, data, size, "fuzz", &exe, &err)) {
        mistake(&err);
        return;
    }
    size_t nargs = otrn_exe_num_args(exe), nresults = otrn_exe_num_results(exe);
    if (run) {
        const void **args = ARENA_NEWN(a, const void *, nargs);
        void **results = ARENA_NEWN(a, void *, nresults);
        for (size_t i = 0; i < nargs; i++) {
            size_t bytes = otrn_type_bytes(otrn_exe_arg_type(exe, i));
            args[i] = arena_alloc(a, bytes);
            fill((uint8_t *)args[i], bytes, hash64(i, data, size));
        }
        for (size_t i = 0; i < nresults; i++)
            results[i] = arena_alloc(a, otrn_type_bytes(otrn_exe_result_type(exe, i)));
        if (run_sized(exe, args, results, &err))
            mistake(&err);
    }
    otrn_exe_free(exe);
}

static void on_evaluator(Hlo *h, Arena *a, uint64_t key) {
    const HloFunc *f = hlo_main(h);
    Tensor args[ARGS_MAX], *results = ARENA_NEWN(a, Tensor, f->nresults);
    if (f->nargs > ARGS_MAX || !f->body)
        return;
    for (uint32_t i = 0; i < f->nargs; i++) {
        ValueId id = h->regions.at[f->body].args + i;
        const HloType *t = hlo_value_type(h, id);
        if (t->kind != HT_TENSOR || t->dynamic)
            return;
        size_t bytes = hlo_type_bytes(t);
        args[i] = (Tensor){h->values.at[id].type, arena_alloc(a, bytes)};
        fill(args[i].data, bytes, key + i);
        if (t->dtype == DT_I1)
            for (size_t k = 0; k < bytes; k++)
                ((uint8_t *)args[i].data)[k] &= 1;
    }
    eval_func(h, a, f, args, results);
}

static otrn_env *environment(void) {
    static otrn_env *env; // made once; closing it would only take time
    static const otrn_option options[] = {{"threads", "1"}, {"cache", "off"}};
    otrn_error err = OTRN_ERROR_INIT;
    if (!env && otrn_open(options, 2, &env, &err))
        abort();
    return env;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Ctx ctx = {0};
    Arena *a = fuzz_arena(&ctx), scratch;
    jmp_buf jb;
    volatile bool verified = false, small = false;
    arena_init(&scratch, &ctx);
    if (CTX_TRY(&ctx, jb)) {
        Hlo *h = read_program(&ctx, a, "fuzz.mlir", data, size);
        hlo_verify(h);
        verified = true;
        small = is_small(h);
        pass_settle(&(Compile){.ctx = &ctx, .arena = a, .scratch = &scratch, .hlo = h});
        if (small)
            on_evaluator(h, a, hash64(0, data, size));
    } else {
        mistake(&ctx.err);
    }
    arena_fini(&scratch);
    if (verified)
        on_chip(environment(), a, data, size, small);
    return 0;
}
