// SPDX-License-Identifier: Apache-2.0
// view_test.c — source lines, roofs and memory occupancy of small programs, worked out by hand.
#include <math.h>
#include <stdio.h>

#include "clock/view.h"

static int failures;
static Ctx ctx;
static Arena arena;
static ChipFile trn2;

static void result(const char *name, bool ok, double have, double want) {
    if (ok)
        printf("ok %s\n", name);
    else
        printf("FAIL %s: %.6g, not %.6g\n", name, have, want);
    failures += !ok;
}
static void near(const char *name, double have, double want) {
    result(name, fabs(have - want) <= 1e-9 * fabs(want) + 1e-6, have, want);
}

static Artifact *art;
static Clock clock_of;
static View view_of(const char *text) {
    art = artifact_parse(&ctx, &arena, "t.s", text, strlen(text));
    artifact_verify(&ctx, art, "t.s");
    View v;
    clock_run(&ctx, &arena, art, &trn2, &(ClockOptions){.events = true}, &clock_of);
    view_make(&arena, art, &trn2, &clock_of, &v);
    return v;
}

// Numbers as people read them: no exponents, thousands apart, seconds in a unit that fits.
static void test_numbers(void) {
    static const struct {
        double v;
        const char *number, *seconds;
    } rows[] = {
        {0, "0", "0 s"},           {2.6e-05, "0.00002600", "26 us"},   {0.00435301, "0.004353", "4.353 ms"}, {0.5, "0.5", "0.5 s"},
        {999.96, "1,000", "1,000 s"}, {1881917.09, "1,881,917", "1,881,917 s"}, {12345678901.0, "12,345,678,901", "12,345,678,901 s"},
        {1000, "1,000", "1,000 s"}, {0.00032684, "0.0003268", "326.8 us"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *number = view_number(&arena, rows[i].v, 4), *seconds = view_seconds(&arena, rows[i].v);
        bool ok = !strcmp(number, rows[i].number) && !strcmp(seconds, rows[i].seconds);
        printf(ok ? "ok number %g\n" : "FAIL number %g: %s, %s\n", rows[i].v, number, seconds);
        failures += !ok;
    }
}

// Three lines with 1, 2 and 10 x 3 copies of one size: the engine's time is shared out 1 : 2 : 30.
static void test_lines(void) {
    View v = view_of(".sbuf x f32[128,512]\n"
                     "vector: memset x imm=0\n"
                     "for i = 0, 2 {\nvector: tensor_scalar x, x op0=add a=1.0\n}\n"
                     "loop j = 0, 10 {\nfor i = 0, 3 {\nvector: tensor_scalar x, x op0=add a=1.0\n}\n}\n");
    double all = 0;
    for (uint32_t i = 0; i < v.lines.n; i++)
        all += v.lines.at[i].busy_ns[ENG_VECTOR];
    near("lines add up to the engine", all, clock_of.busy_ns[ENG_VECTOR]);
    near("the longest line is the loop's", v.lines.at[0].line, 8);
    near("its share", v.lines.at[0].busy_ns[ENG_VECTOR] / all, 30.0 / 33);
    near("it ran 30 times", v.lines.at[0].insts, 30);
    near("the next one", v.lines.at[1].line, 4);
}

static void test_roof(void) {
    const char *body = ".input a %s[128,128]\n.input b %s[128,512]\n.output c f32[128,512]\n"
                       ".sbuf w %s[128,128]\n.sbuf x %s[128,512]\n.sbuf y f32[128,512]\n.psum p f32[128,512]\n"
                       ".sync auto\ndma w, a\ndma x, b\nldweights w\nmatmul p, x\nvector: tensor_copy y, p\n"
                       "dma c, y\n";
    View v = view_of(arena_printf(&arena, body, "bf16", "bf16", "bf16", "bf16"));
    double flops = 2.0 * 128 * 128 * 512, bytes = 2 * 128 * 128 + 2 * 128 * 512 + 4 * 128 * 512;
    near("flops", v.roof.flops, flops);
    near("bytes", v.roof.hbm_bytes, bytes);
    near("time at the tensor engine's roof", v.roof.compute_ns, 512 / trn2.pe_ghz);
    near("time at the HBM's roof", v.roof.memory_ns, bytes / trn2.hbm_bw_core);
    near("attainable", v.roof.attainable, flops / (bytes / trn2.hbm_bw_core) * 1e9);
    near("achieved", v.roof.achieved, flops / clock_of.total_ns * 1e9);
    double ridge = v.roof.ridge;
    v = view_of(arena_printf(&arena, body, "f32", "f32", "f32", "f32"));
    near("fp32 has a lower roof", v.roof.ridge * trn2.pe_fp32_passes, ridge);
}

// Two cores with programs of their own: amounts add up, busy is the mean, lines are those of both.
static void test_pair(void) {
    View v = view_of(".cores 2\n.sbuf x f32[128,512]\n.sbuf w bf16[128,128]\n.sbuf y bf16[128,512]\n.psum p f32[128,512]\n"
                     ".sync auto\nvector: memset x imm=0\n"
                     "if core == 1 {\nfor i = 0, 3 {\nvector: tensor_scalar x, x op0=add a=1.0\n}\n}\n"
                     "memset w imm=0\nmemset y imm=0\nldweights w\nmatmul p, y\n");
    near("products of both", v.roof.flops, 2 * 2.0 * 128 * 128 * 512);
    near("at twice the rate", v.roof.compute_ns, 512 / trn2.pe_ghz);
    double mine = 0, all = 0;
    for (uint32_t i = 0; i < v.lines.n; i++) {
        mine += v.lines.at[i].line == 10 ? v.lines.at[i].insts : 0;
        all += v.lines.at[i].busy_ns[ENG_VECTOR];
    }
    near("a line of the second core's", mine, 3);
    near("lines add up", all, clock_of.busy_ns[ENG_VECTOR]);
}

// Two tiles one after the other: each is there from its load to its store, never both.
static void test_memory(void) {
    View v = view_of(".input a f32[128,4096]\n.output c f32[128,4096]\n.tensor t f32[128,4096]\n"
                     ".sbuf x f32[128,4096]\n.sbuf y f32[128,4096]\n.sync auto\n"
                     "dma x, a\ndma t, x\nbarrier\ndma y, t\ndma c, y\n");
    double tile = 128 * 4096 * 4.0;
    near("SBUF's peak is one tile", v.memory[VIEW_SBUF].peak_bytes, tile);
    near("HBM: argument, result and the tensor between", v.memory[VIEW_HBM].peak_bytes, 3 * tile);
    near("HBM at the end", v.memory[VIEW_HBM].bins[VIEW_BINS - 1], 2 * tile);
    near("PSUM stays empty", v.memory[VIEW_PSUM].peak_bytes, 0);
    near("capacity", v.memory[VIEW_SBUF].capacity_bytes, trn2.sbuf_partition_bytes * 128);
    near("planned", view_hbm_planned(art), 3 * tile);
    // A long loop is multiplied: its buffers are full in the middle all the same.
    v = view_of(".input a f32[128,4096]\n.output c f32[128,4096]\n.sbuf x f32[2][128,4096]\n.sync auto\n"
                "loop i = 0, 4096 {\ndma x[i%2], a\nscalar: dma c, x[i%2] queue=1\n}\n");
    near("a loop's two buffers", v.memory[VIEW_SBUF].bins[VIEW_BINS / 2], 2 * tile);
    result("most of it was not stepped through", clock_of.simulated < 4096, (double)clock_of.simulated, 4096);
}

int main(void) {
    arena_init(&arena, &ctx);
    jmp_buf jb;
    if (!CTX_TRY(&ctx, jb)) {
        printf("FAIL %s\n", ctx.err.text);
        return 1;
    }
    chipfile_load(&ctx, &arena, "trn2", "", &trn2);
    test_numbers();
    test_lines();
    test_roof();
    test_memory();
    test_pair();
    arena_fini(&arena);
    return failures != 0;
}
