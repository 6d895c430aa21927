// SPDX-License-Identifier: Apache-2.0
// compile_bench.c — does any stage of the compiler take more than its share when a program grows?
//
// Training steps of 1, 2, 4 and 8 times as many layers (dense layers with a norm, their gradients, momentum) are compiled; a
// stage that is linear takes as many times as long. Printed: milliseconds of each stage, best of a few rounds, and by how much
// the time of one layer grew. Exit status 1 when that is more than half of what a quadratic stage would show.
// Usage: compile_bench [layers [rounds]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "rt/rt.h"

#define SIZES 4
#define NOTICED_MS 4.0 // shorter stages are noise
#define MATRIX "tensor<128x128xf32>"
#define VECTOR "tensor<128xf32>"

static void layer_forward(Buf *b, int i) {
    buf_printf(b, "  %%s%d = stablehlo.reduce(%%h%d init: %%zero) applies stablehlo.add across dimensions = [1] : (" MATRIX ", tensor<f32>) -> " VECTOR "\n", i, i);
    buf_printf(b, "  %%m%d = stablehlo.broadcast_in_dim %%s%d, dims = [0] : (" VECTOR ") -> " MATRIX "\n", i, i);
    buf_printf(b, "  %%c%d = stablehlo.subtract %%h%d, %%m%d : " MATRIX "\n", i, i, i);
    buf_printf(b, "  %%p%d = stablehlo.dot_general %%c%d, %%w%d, contracting_dims = [1] x [0] : (" MATRIX ", " MATRIX ") -> " MATRIX "\n", i, i, i);
    buf_printf(b, "  %%t%d = stablehlo.tanh %%p%d : " MATRIX "\n", i, i);
    buf_printf(b, "  %%h%d = stablehlo.add %%h%d, %%t%d : " MATRIX "\n", i + 1, i, i);
}

static void layer_backward(Buf *b, int i) {
    buf_printf(b, "  %%q%d = stablehlo.multiply %%t%d, %%t%d : " MATRIX "\n", i, i, i);
    buf_printf(b, "  %%o%d = stablehlo.subtract %%one, %%q%d : " MATRIX "\n", i, i);
    buf_printf(b, "  %%d%d = stablehlo.multiply %%g%d, %%o%d : " MATRIX "\n", i, i + 1, i);
    buf_printf(b, "  %%x%d = stablehlo.transpose %%c%d, dims = [1, 0] : (" MATRIX ") -> " MATRIX "\n", i, i);
    buf_printf(b, "  %%e%d = stablehlo.dot_general %%x%d, %%d%d, contracting_dims = [1] x [0] : (" MATRIX ", " MATRIX ") -> " MATRIX "\n", i, i, i);
    buf_printf(b, "  %%f%d = stablehlo.dot_general %%d%d, %%w%d, contracting_dims = [1] x [1] : (" MATRIX ", " MATRIX ") -> " MATRIX "\n", i, i, i);
    buf_printf(b, "  %%g%d = stablehlo.add %%g%d, %%f%d : " MATRIX "\n", i, i + 1, i);
    buf_printf(b, "  %%k%d = stablehlo.multiply %%v%d, %%rate : " MATRIX "\n", i, i);
    buf_printf(b, "  %%n%d = stablehlo.add %%k%d, %%e%d : " MATRIX "\n", i, i, i);
    buf_printf(b, "  %%u%d = stablehlo.subtract %%w%d, %%n%d : " MATRIX "\n", i, i, i);
}

static void program_print(Buf *b, int layers) {
    buf_puts(b, "func.func @main(%h0: " MATRIX);
    for (int i = 0; i < layers; i++)
        buf_printf(b, ", %%w%d: " MATRIX ", %%v%d: " MATRIX, i, i);
    buf_puts(b, ") -> (" MATRIX);
    for (int i = 0; i < layers; i++)
        buf_puts(b, ", " MATRIX ", " MATRIX);
    buf_puts(b, ") {\n  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n  %one = stablehlo.constant dense<1.0> : " MATRIX
                "\n  %rate = stablehlo.constant dense<0.9> : " MATRIX "\n");
    for (int i = 0; i < layers; i++)
        layer_forward(b, i);
    buf_printf(b, "  %%g%d = stablehlo.negate %%h%d : " MATRIX "\n", layers, layers);
    for (int i = layers; i-- > 0;)
        layer_backward(b, i);
    buf_puts(b, "  return %g0");
    for (int i = 0; i < layers; i++)
        buf_printf(b, ", %%u%d, %%n%d", i, i);
    buf_puts(b, " : " MATRIX);
    for (int i = 0; i < layers; i++)
        buf_puts(b, ", " MATRIX ", " MATRIX);
    buf_puts(b, "\n}\n");
}

// Compiles once and keeps the shortest time of every stage.
static void compile_once(Ctx *ctx, const Options *opts, const Buf *text, RtStats *best, bool first) {
    Arena a;
    arena_init(&a, ctx);
    RtStats stats = {0};
    RtCompile in = {.opts = opts, .name = "layers.mlir", .bytes = text->at, .size = text->n, .stats = &stats};
    Buf out = {.arena = &a};
    rt_compile(ctx, &a, &in, &out);
    for (int i = 0; i < stats.count; i++)
        if (!first && best->stages[i].seconds < stats.stages[i].seconds)
            stats.stages[i].seconds = best->stages[i].seconds;
    *best = stats;
    arena_fini(&a);
}

static int stages_print(const RtStats *of) {
    int bad = 0;
    printf("%-10s", "stage ms");
    for (int s = 0; s < SIZES; s++)
        printf(" %8dx", 1 << s);
    printf("   growth of one layer's time\n");
    for (int i = 0; i < of[0].count; i++) {
        double small = of[0].stages[i].seconds, large = of[SIZES - 1].stages[i].seconds;
        double growth = small > 0 ? large / small / (1 << (SIZES - 1)) : 0;
        bool high = large * 1e3 > NOTICED_MS && growth > (1 << (SIZES - 1)) / 2;
        printf("%-10s", of[0].stages[i].name);
        for (int s = 0; s < SIZES; s++)
            printf(" %9.2f", of[s].stages[i].seconds * 1e3);
        printf("   %.2f%s\n", growth, high ? "  MORE THAN ITS SHARE" : "");
        bad += high;
    }
    return bad;
}

int main(int argc, char **argv) {
    int layers = argc > 1 ? atoi(argv[1]) : 96, rounds = argc > 2 ? atoi(argv[2]) : 3;
    Ctx ctx = {0};
    jmp_buf jb;
    Arena a;
    arena_init(&a, &ctx);
    if (layers < 1 || rounds < 1 || !CTX_TRY(&ctx, jb)) {
        fprintf(stderr, "compile_bench: %s\n", ctx.err.text[0] ? ctx.err.text : "usage: compile_bench [layers [rounds]]");
        return 1;
    }
    Options opts;
    opt_init(&ctx, &opts);
    opt_set(&ctx, &opts, "cache", "off", "the benchmark");
    RtStats best[SIZES] = {0};
    for (int s = 0; s < SIZES; s++) {
        Buf text = {.arena = &a};
        program_print(&text, layers << s);
        for (int r = 0; r < rounds; r++)
            compile_once(&ctx, &opts, &text, &best[s], r == 0);
    }
    printf("a step of %d layers and its multiples\n", layers);
    int bad = stages_print(best);
    arena_fini(&a);
    return bad != 0;
}
