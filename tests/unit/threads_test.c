// SPDX-License-Identifier: Apache-2.0
// threads_test.c — the compiler makes the same artifact, byte for byte, with any number of threads, and fails alike.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "otrn.h"
#include "unit.h"

#define M "tensor<256x256xf32>"
#define V "tensor<256xf32>"
#define LAYERS 40

typedef struct Text {
    char *at;
    size_t n;
} Text;

static void layer(Text *t, uint64_t *rng, int i) {
    static const char *const ops[] = {"tanh", "exponential", "negate", "abs", "logistic"};
    const char *op = ops[rng_below(rng, 5)];
    t->n += (size_t)sprintf(t->at + t->n,
        "  %%s%d = stablehlo.reduce(%%h%d init: %%zero) applies stablehlo.add across dimensions = [1] : (" M ", tensor<f32>) -> " V "\n"
        "  %%b%d = stablehlo.broadcast_in_dim %%s%d, dims = [0] : (" V ") -> " M "\n"
        "  %%c%d = stablehlo.subtract %%h%d, %%b%d : " M "\n"
        "  %%p%d = stablehlo.dot_general %%c%d, %%w%u, contracting_dims = [%u] x [%u] : (" M ", " M ") -> " M "\n"
        "  %%t%d = stablehlo.%s %%p%d : " M "\n"
        "  %%h%d = stablehlo.add %%h%u, %%t%d : " M "\n",
        i, i, i, i, i, i, i, i, i, rng_below(rng, 3), rng_below(rng, 2), rng_below(rng, 2), i, op, i, i + 1,
        i ? (unsigned)i - rng_below(rng, 2) : 0, i);
    if (rng_below(rng, 4) == 0) // on GpSimd, in between
        t->n += (size_t)sprintf(t->at + t->n, "  %%k%d = \"stablehlo.sort\"(%%h%d) <{dimension = 1 : i64, is_stable = false}> ({\n"
            "  ^bb0(%%x: tensor<f32>, %%y: tensor<f32>):\n    %%q = stablehlo.compare LT, %%x, %%y : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
            "    stablehlo.return %%q : tensor<i1>\n  }) : (" M ") -> " M "\n", i, i + 1);
}

static void program(Text *t, uint64_t seed) {
    uint64_t rng = seed;
    t->n = (size_t)sprintf(t->at, "func.func @main(%%h0: " M ", %%w0: " M ", %%w1: " M ", %%w2: " M ") -> " M " {\n"
                                  "  %%zero = stablehlo.constant dense<0.0> : tensor<f32>\n");
    for (int i = 0; i < LAYERS; i++)
        layer(t, &rng, i);
    t->n += (size_t)sprintf(t->at + t->n, "  return %%h%d : " M "\n}\n", LAYERS);
}

typedef struct Made {
    void *bytes;
    size_t size;
    otrn_error err;
} Made;

static Made make(const Text *t, const char *threads, const char *lnc) {
    otrn_option opts[] = {{"cache", "off"}, {"threads", threads}, {"lnc", lnc}};
    Made m = {.err = OTRN_ERROR_INIT};
    otrn_env *env;
    otrn_exe *exe;
    if (otrn_open(opts, 3, &env, &m.err) != OTRN_OK)
        return m;
    if (otrn_compile(env, t->at, t->n, "threads.mlir", &exe, &m.err) == OTRN_OK) {
        const void *bytes = otrn_exe_bytes(exe, &m.size);
        m.bytes = malloc(m.size);
        memcpy(m.bytes, bytes, m.size);
        otrn_exe_free(exe);
    }
    otrn_close(env);
    return m;
}

static const char *same(const Text *t, const char *lnc, bool good) {
    const char *const threads[] = {"1", "2", "3"};
    Made first = make(t, threads[0], lnc);
    const char *why = good == (first.bytes != NULL) ? NULL : good ? "does not compile" : "compiles";
    for (int i = 1; i < 3 && !why; i++) {
        Made m = make(t, threads[i], lnc);
        if (m.size != first.size || (m.size && memcmp(m.bytes, first.bytes, m.size)))
            why = "another artifact with more threads";
        else if (m.err.code != first.err.code || strcmp(m.err.text, first.err.text) || m.err.line != first.err.line)
            why = "another error with more threads";
        free(m.bytes);
    }
    free(first.bytes);
    return why;
}

int main(void) {
    Text t = {.at = malloc(1 << 20)};
    for (uint64_t seed = 1; seed <= 4; seed++) {
        char name[40];
        program(&t, seed);
        snprintf(name, sizeof name, "threads/program %d", (int)seed);
        result(name, same(&t, seed & 1 ? "1" : "2", true));
    }
    program(&t, 5); // the last step has a type that no chip has
    t.n -= strlen("  return %h40 : " M "\n}\n");
    sprintf(t.at + t.n, "  %%z = stablehlo.custom_call @nobody(%%h%d) : (" M ") -> " M "\n  return %%z : " M "\n}\n", LAYERS);
    t.n = strlen(t.at);
    result("threads/error", same(&t, "1", false));
    free(t.at);
    return failures != 0;
}
