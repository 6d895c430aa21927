// SPDX-License-Identifier: Apache-2.0
// random_test.c — random programs with loops, branches and donated arguments: chip against evaluator.
//
// Each program is text made from a seed: elementwise ops, movement, slices and updates, reductions, products,
// nested while and case, with arguments whose memory results take over. It runs on the evaluator, and on the
// chip with results in memory of their own and with results in place of their arguments; one and several
// threads. Integers must agree to the bit, floats within the tolerance table, and the chip with itself to the
// bit. Usage: random_test [PROGRAMS [SEED]]; a failure prints the seed and leaves the program in a file.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/eval.h"
#include "hlo/tol.h"
#include "otrn.h"
#include "read/read.h"

#define TEXT_MAX (1u << 20)
#define VALUES_MAX 4000
#define ARGS 6

static const char *const shapes[] = {"6x8x", "8x6x", "48x", "6x", "8x8x", "1x8x", ""};
static const int elems[] = {48, 48, 48, 6, 64, 8, 1};
enum { S68, S86, S48, S6, S88, S18, S0, NSHAPES };
enum { I32, F32, NELEMS };
static const char *const elem_names[] = {"i32", "f32"};

typedef struct Gen {
    uint64_t rng;
    char *text;
    size_t n;
    int next; // value names handed out
    struct {
        int name, shape, elem;
    } vals[VALUES_MAX];
    int nvals; // in scope
    int depth;
} Gen;

static uint32_t rnd(Gen *g, uint32_t below) {
    uint64_t z = (g->rng += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 33) % below;
}

static void out(Gen *g, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    g->n += (size_t)vsnprintf(g->text + g->n, TEXT_MAX - g->n, fmt, ap);
    va_end(ap);
    if (g->n >= TEXT_MAX - 4096)
        abort();
}

static void out_type(Gen *g, int shape, int elem) {
    out(g, "tensor<%s%s>", shapes[shape], elem_names[elem]);
}

static int fresh(Gen *g, int shape, int elem) { // a new value in scope
    if (g->nvals == VALUES_MAX)
        abort();
    g->vals[g->nvals].name = g->next++;
    g->vals[g->nvals].shape = shape;
    g->vals[g->nvals].elem = elem;
    return g->vals[g->nvals++].name;
}

// A value of this type in scope; made as a constant when there is none.
static int pick(Gen *g, int shape, int elem) {
    int at = (int)rnd(g, (uint32_t)g->nvals);
    for (int i = 0; i < g->nvals; i++) {
        int k = (at + i) % g->nvals;
        if (g->vals[k].shape == shape && g->vals[k].elem == elem)
            return g->vals[k].name;
    }
    int v = fresh(g, shape, elem);
    out(g, "%%v%d = stablehlo.constant dense<%d%s> : ", v, (int)rnd(g, 7) - 3, elem == F32 ? ".0" : "");
    out_type(g, shape, elem);
    out(g, "\n");
    return v;
}

static void gen_block(Gen *g, int count);

static void gen_elementwise(Gen *g) {
    static const char *const two[NELEMS][6] = {{"add", "subtract", "multiply", "maximum", "xor", "and"},
                                               {"add", "subtract", "maximum", "minimum", "add", "maximum"}};
    static const char *const one[NELEMS][3] = {{"negate", "not", "sign"}, {"negate", "tanh", "abs"}};
    int shape = (int)rnd(g, NSHAPES), elem = (int)rnd(g, NELEMS);
    int a = pick(g, shape, elem), b = pick(g, shape, elem);
    if (rnd(g, 3) == 0) {
        int v = fresh(g, shape, elem);
        out(g, "%%v%d = stablehlo.%s %%v%d : ", v, one[elem][rnd(g, 3)], a);
    } else {
        int v = fresh(g, shape, elem);
        out(g, "%%v%d = stablehlo.%s %%v%d, %%v%d : ", v, two[elem][rnd(g, 6)], a, b);
    }
    out_type(g, shape, elem);
    out(g, "\n");
}

static void gen_unary_move(Gen *g, const char *op, int from, int to, const char *extra) {
    int elem = (int)rnd(g, NELEMS), a = pick(g, from, elem), v = fresh(g, to, elem);
    out(g, "%%v%d = stablehlo.%s %%v%d%s : (", v, op, a, extra);
    out_type(g, from, elem);
    out(g, ") -> ");
    out_type(g, to, elem);
    out(g, "\n");
}

static void gen_move(Gen *g) {
    switch (rnd(g, 7)) {
    case 0:
        gen_unary_move(g, "reshape", S68, rnd(g, 2) ? S48 : S86, "");
        return;
    case 1:
        gen_unary_move(g, "reshape", rnd(g, 2) ? S48 : S86, S68, "");
        return;
    case 2:
        gen_unary_move(g, "transpose", S68, S86, ", dims = [1, 0]");
        return;
    case 3:
        gen_unary_move(g, "transpose", S86, S68, ", dims = [1, 0]");
        return;
    case 4:
        gen_unary_move(g, "broadcast_in_dim", S6, rnd(g, 2) ? S68 : S68, ", dims = [0]");
        return;
    case 5:
        gen_unary_move(g, "broadcast_in_dim", S0, (int)rnd(g, S0), ", dims = []");
        return;
    default:
        gen_unary_move(g, "broadcast_in_dim", S18, S88, ", dims = [0, 1]");
    }
}

static void gen_update(Gen *g) {
    int elem = (int)rnd(g, NELEMS), big = rnd(g, 2) ? S68 : S88;
    int a = pick(g, big, elem), u = pick(g, S18, elem), i = pick(g, S0, I32), j = pick(g, S0, I32);
    if (rnd(g, 2)) {
        int v = fresh(g, big, elem);
        out(g, "%%v%d = stablehlo.dynamic_update_slice %%v%d, %%v%d, %%v%d, %%v%d : (", v, a, u, i, j);
        out_type(g, big, elem);
        out(g, ", ");
        out_type(g, S18, elem);
        out(g, ", tensor<i32>, tensor<i32>) -> ");
        out_type(g, big, elem);
    } else {
        int v = fresh(g, S18, elem);
        out(g, "%%v%d = stablehlo.dynamic_slice %%v%d, %%v%d, %%v%d, sizes = [1, 8] : (", v, a, i, j);
        out_type(g, big, elem);
        out(g, ", tensor<i32>, tensor<i32>) -> ");
        out_type(g, S18, elem);
    }
    out(g, "\n");
}

static void gen_reduce(Gen *g) {
    int elem = (int)rnd(g, NELEMS), a = pick(g, S68, elem), z = pick(g, S0, elem);
    int all = (int)rnd(g, 2), v = fresh(g, all ? S0 : S6, elem);
    out(g, "%%v%d = stablehlo.reduce(%%v%d init: %%v%d) applies stablehlo.%s across dimensions = [%s] : (", v,
        a, z, rnd(g, 2) ? "maximum" : elem == F32 ? "minimum" : "add", all ? "0, 1" : "1");
    out_type(g, S68, elem);
    out(g, ", ");
    out_type(g, S0, elem);
    out(g, ") -> ");
    out_type(g, all ? S0 : S6, elem);
    out(g, "\n");
}

// Operands go through tanh first, so that values stay small however often products feed products.
static void gen_dot(Gen *g) {
    int x = pick(g, S88, F32), y = pick(g, S88, F32), a = fresh(g, S88, F32), b = fresh(g, S88, F32);
    out(g, "%%v%d = stablehlo.tanh %%v%d : tensor<8x8xf32>\n", a, x);
    out(g, "%%v%d = stablehlo.tanh %%v%d : tensor<8x8xf32>\n", b, y);
    int v = fresh(g, S88, F32);
    out(g,
        "%%v%d = stablehlo.dot_general %%v%d, %%v%d, contracting_dims = [%u] x [%u] : "
        "(tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\n",
        v, a, b, rnd(g, 2), rnd(g, 2));
}

static void gen_select(Gen *g) {
    int shape = (int)rnd(g, NSHAPES), a = pick(g, shape, I32), b = pick(g, shape, I32), p = g->next++;
    int elem = (int)rnd(g, NELEMS), x = pick(g, shape, elem), y = pick(g, shape, elem);
    out(g, "%%v%d = stablehlo.compare LT, %%v%d, %%v%d, SIGNED : (", p, a, b);
    out_type(g, shape, I32);
    out(g, ", ");
    out_type(g, shape, I32);
    out(g, ") -> tensor<%si1>\n", shapes[shape]);
    int v = fresh(g, shape, elem);
    out(g, "%%v%d = stablehlo.select %%v%d, %%v%d, %%v%d : tensor<%si1>, ", v, p, x, y, shapes[shape]);
    out_type(g, shape, elem);
    out(g, "\n");
}

static void gen_while(Gen *g) {
    int carries = 1 + (int)rnd(g, 5), shape[6], elem[6], init[6], trips = (int)rnd(g, 4);
    int zero = g->next++;
    for (int i = 0; i < carries; i++) {
        shape[i] = (int)rnd(g, NSHAPES), elem[i] = (int)rnd(g, NELEMS);
        init[i] = pick(g, shape[i], elem[i]);
    }
    out(g, "%%v%d = stablehlo.constant dense<0> : tensor<i32>\n", zero);
    int res = g->next++, counter = g->next++, limit = g->next++, p = g->next++;
    int outer = g->nvals;
    out(g, "%%v%d:%d = stablehlo.while(%%v%d = %%v%d", res, carries + 1, counter, zero);
    for (int i = 0; i < carries; i++) {
        int v = fresh(g, shape[i], elem[i]);
        out(g, ", %%v%d = %%v%d", v, init[i]);
    }
    out(g, ") : tensor<i32>");
    for (int i = 0; i < carries; i++)
        out(g, ", "), out_type(g, shape[i], elem[i]);
    out(g, "\n cond {\n%%v%d = stablehlo.constant dense<%d> : tensor<i32>\n", limit, trips);
    out(g, "%%v%d = stablehlo.compare LT, %%v%d, %%v%d, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n", p,
        counter, limit);
    out(g, "stablehlo.return %%v%d : tensor<i1>\n} do {\n", p);
    int one = g->next++, next = g->next++, yield[6];
    out(g, "%%v%d = stablehlo.constant dense<1> : tensor<i32>\n", one);
    gen_block(g, 2 + (int)rnd(g, 8));
    for (int i = 0; i < carries; i++)
        yield[i] = pick(g, shape[i], elem[i]);
    out(g, "%%v%d = stablehlo.add %%v%d, %%v%d : tensor<i32>\n", next, counter, one);
    out(g, "stablehlo.return %%v%d", next);
    for (int i = 0; i < carries; i++)
        out(g, ", %%v%d", yield[i]);
    out(g, " : tensor<i32>");
    for (int i = 0; i < carries; i++)
        out(g, ", "), out_type(g, shape[i], elem[i]);
    out(g, "\n}\n");
    g->nvals = outer; // what the body made is out of scope
    for (int i = 0; i < carries; i++) { // name the results
        int v = fresh(g, shape[i], elem[i]);
        out(g, "%%v%d = stablehlo.optimization_barrier %%v%d#%d : ", v, res, i + 1);
        out_type(g, shape[i], elem[i]);
        out(g, "\n");
    }
}

static void gen_case(Gen *g) {
    int results = 1 + (int)rnd(g, 3), shape[3], elem[3], index = pick(g, S0, I32), res = g->next++;
    int branches = 1 + (int)rnd(g, 3), outer = g->nvals;
    for (int i = 0; i < results; i++)
        shape[i] = (int)rnd(g, NSHAPES), elem[i] = (int)rnd(g, NELEMS);
    out(g, "%%v%d:%d = \"stablehlo.case\"(%%v%d) (", res, results, index);
    for (int b = 0; b < branches; b++) {
        out(g, "%s{\n", b ? ", " : "");
        gen_block(g, 1 + (int)rnd(g, 5));
        int yield[3];
        for (int i = 0; i < results; i++)
            yield[i] = pick(g, shape[i], elem[i]);
        out(g, "stablehlo.return ");
        for (int i = 0; i < results; i++)
            out(g, "%s%%v%d", i ? ", " : "", yield[i]);
        out(g, " : ");
        for (int i = 0; i < results; i++)
            out(g, "%s", i ? ", " : ""), out_type(g, shape[i], elem[i]);
        out(g, "\n}");
        g->nvals = outer;
    }
    out(g, ") : (tensor<i32>) -> (");
    for (int i = 0; i < results; i++)
        out(g, "%s", i ? ", " : ""), out_type(g, shape[i], elem[i]);
    out(g, ")\n");
    for (int i = 0; i < results; i++) {
        int v = fresh(g, shape[i], elem[i]);
        out(g, "%%v%d = stablehlo.optimization_barrier %%v%d#%d : ", v, res, i);
        out_type(g, shape[i], elem[i]);
        out(g, "\n");
    }
}

static void gen_block(Gen *g, int count) {
    if (++g->depth > 3)
        count = 1;
    for (int i = 0; i < count; i++) {
        uint32_t k = rnd(g, 20);
        if (k < 7)
            gen_elementwise(g);
        else if (k < 11)
            gen_move(g);
        else if (k < 14)
            gen_update(g);
        else if (k < 15)
            gen_reduce(g);
        else if (k < 16)
            gen_dot(g);
        else if (k < 17)
            gen_select(g);
        else if (g->depth > 2)
            gen_elementwise(g);
        else if (k < 19)
            gen_while(g);
        else
            gen_case(g);
    }
    g->depth--;
}

static const int arg_shape[ARGS] = {S68, S68, S88, S48, S0, S88}, arg_elem[ARGS] = {I32, F32, F32, I32, I32, F32};

// Result i has the type of argument i, and takes its memory over for some of them.
static void gen_program(Gen *g) {
    out(g, "func.func public @main(");
    for (int i = 0; i < ARGS; i++) {
        out(g, "%s%%v%d: ", i ? ", " : "", fresh(g, arg_shape[i], arg_elem[i]));
        out_type(g, arg_shape[i], arg_elem[i]);
        if (rnd(g, 3))
            out(g, " {tf.aliasing_output = %d : i32}", i);
    }
    out(g, ") -> (");
    for (int i = 0; i < ARGS; i++)
        out(g, "%s", i ? ", " : ""), out_type(g, arg_shape[i], arg_elem[i]);
    out(g, ") {\n");
    gen_block(g, 6 + (int)rnd(g, 20));
    int ret[ARGS];
    for (int i = 0; i < ARGS; i++)
        ret[i] = pick(g, arg_shape[i], arg_elem[i]);
    out(g, "return ");
    for (int i = 0; i < ARGS; i++)
        out(g, "%s%%v%d", i ? ", " : "", ret[i]);
    out(g, " : ");
    for (int i = 0; i < ARGS; i++)
        out(g, "%s", i ? ", " : ""), out_type(g, arg_shape[i], arg_elem[i]);
    out(g, "\n}\n");
}

// --- running -------------------------------------------------------------------------------------------

typedef struct Data {
    uint32_t at[ARGS][64];
} Data;

static void fill(Gen *g, Data *d) {
    for (int i = 0; i < ARGS; i++)
        for (int k = 0; k < elems[arg_shape[i]]; k++) {
            int32_t n = (int32_t)rnd(g, 9) - 4;
            float f = (float)n * 0.25f;
            memcpy(&d->at[i][k], arg_elem[i] == I32 ? (void *)&n : (void *)&f, 4);
        }
}

static bool run_eval(const Gen *g, const Data *in, Data *want, otrn_error *err) {
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
        Tensor args[ARGS], results[ARGS];
        for (int i = 0; i < ARGS; i++)
            args[i] = (Tensor){h->values.at[h->regions.at[f->body].args + (ValueId)i].type, (void *)in->at[i]};
        eval_func(h, keep, f, args, results);
        for (int i = 0; i < ARGS; i++)
            memcpy(want->at[i], results[i].data, (size_t)elems[arg_shape[i]] * 4);
    } else {
        *err = ctx.err;
    }
    arena_fini(keep);
    return ok;
}

static bool run_chip(otrn_env *env, const Gen *g, const Data *in, bool in_place, Data *got, otrn_error *err) {
    otrn_exe *exe;
    if (otrn_compile(env, g->text, g->n, "random", &exe, err))
        return false;
    Data args = *in;
    const void *arg[ARGS];
    void *res[ARGS];
    for (int i = 0; i < ARGS; i++) {
        arg[i] = args.at[i];
        int64_t alias = otrn_exe_result_alias(exe, (size_t)i);
        res[i] = in_place && alias >= 0 ? (void *)args.at[alias] : got->at[i];
    }
    bool ok = otrn_execute(exe, arg, res, err) == OTRN_OK;
    for (int i = 0; ok && i < ARGS; i++)
        if (res[i] != got->at[i])
            memcpy(got->at[i], res[i], sizeof got->at[i]);
    otrn_exe_free(exe);
    return ok;
}

static const char *compare(const Data *want, const Data *got, bool exact) {
    static char why[128];
    for (int i = 0; i < ARGS; i++) {
        size_t n = (size_t)elems[arg_shape[i]], bad;
        if (exact ? memcmp(want->at[i], got->at[i], n * 4) == 0
                  : tol_close(arg_elem[i] == I32 ? DT_I32 : DT_F32, got->at[i], want->at[i], n, &bad))
            continue;
        snprintf(why, sizeof why, "result %d differs%s", i, exact ? " between two runs of the chip" : "");
        return why;
    }
    return NULL;
}

static bool one_program(otrn_env *const envs[2], Gen *g, uint64_t seed) {
    *g = (Gen){.rng = seed, .text = g->text};
    gen_program(g);
    Data in, want, first, got;
    fill(g, &in);
    memset(&got, 0xa5, sizeof got);
    otrn_error err = {0};
    const char *why = NULL;
    if (!run_eval(g, &in, &want, &err) || !run_chip(envs[0], g, &in, false, &first, &err))
        why = err.text;
    if (!why)
        why = compare(&want, &first, false);
    if (!why)
        why = !run_chip(envs[0], g, &in, true, &got, &err) ? err.text : compare(&first, &got, true);
    if (!why)
        why = !run_chip(envs[1], g, &in, true, &got, &err) ? err.text : compare(&first, &got, true);
    if (!why)
        return true;
    printf("FAIL random program, seed %llu: %s\n", (unsigned long long)seed, why);
    FILE *f = fopen("random_fail.mlir", "w");
    if (f) {
        fwrite(g->text, 1, g->n, f);
        fclose(f);
        printf("  the program is in random_fail.mlir\n");
    }
    return false;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 400;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 20261;
    otrn_option options[2][3] = {{{"threads", "1"}, {"cache", "off"}, {"host", "auto"}},
                                 {{"threads", "3"}, {"cache", "off"}, {"host", "portable"}}};
    otrn_env *envs[2];
    otrn_error err;
    Gen g = {.text = malloc(TEXT_MAX)};
    for (int i = 0; i < 2; i++)
        if (!g.text || otrn_open(options[i], 3, &envs[i], &err)) {
            printf("FAIL open: %s\n", err.text);
            return 1;
        }
    bool ok = true;
    for (long i = 0; i < count && ok; i++)
        ok = one_program(envs, &g, seed + (uint64_t)i);
    if (ok)
        printf("ok %ld random programs from seed %llu\n", count, (unsigned long long)seed);
    otrn_close(envs[0]);
    otrn_close(envs[1]);
    free(g.text);
    return !ok;
}
