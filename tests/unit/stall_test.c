// SPDX-License-Identifier: Apache-2.0
// stall_test.c — critical path and stalls: figures worked out by hand, and sums that hold for any program, its loops
// stepped through or multiplied.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock/flow.h"
#include "clock/stall.h"
#include "clock_case.h"

static Ctx ctx;
static Arena arena;
static ChipFile trn1, trn2;

typedef struct Run {
    Clock clock;
    View view;
    Stalls stalls;
} Run;

static Run *run_of(const char *text, const ChipFile *chip, bool stepwise, int cores) {
    Artifact *art = artifact_parse(&ctx, &arena, "t.s", text, strlen(text));
    artifact_verify(&ctx, art, "t.s");
    Run *r = ARENA_NEW(&arena, Run);
    clock_run(&ctx, &arena, art, chip, &(ClockOptions){.stalls = true, .stepwise = stepwise, .cores = cores}, &r->clock);
    view_make(&arena, art, chip, &r->clock, &r->view);
    stall_make(&arena, art, chip, &r->clock, &r->view, &r->stalls);
    return r;
}

static double stall_sum(const Stalls *s, int track) {
    double sum = 0;
    for (int i = 0; i < STALL_COUNT; i++)
        sum += s->stall_ns[track][i];
    return sum;
}

// Every sum that must add up to the run's time.
static const char *sums(const Run *r) {
    const Stalls *s = &r->stalls;
    const char *why = s->known ? NULL : "not known";
    double path = 0, rows = 0, of_rows = 0, insts = 0, waits = 0;
    for (int t = 0; t < CLOCK_TRACKS && !why; t++) {
        why = near(s->busy_ns[t], r->clock.busy_ns[t], "busy");
        why = why ? why : near(s->busy_ns[t] + stall_sum(s, t) + s->idle_ns[t], r->clock.total_ns, clock_track_names[t]);
        of_rows += stall_sum(s, t);
        for (int k = 0; k < PATH_KINDS; k++)
            path += s->path_ns[t][k];
    }
    why = why ? why : near(path, r->clock.total_ns, "path");
    for (uint32_t i = 0; i < s->rows.n; i++)
        rows += s->rows.at[i].ns;
    why = why ? why : near(rows, of_rows, "rows");
    double lines = 0;
    for (uint32_t i = 0; i < s->path.n; i++)
        lines += s->path.at[i].ns;
    why = why ? why : near(lines, path, "lines of the path");
    for (uint32_t pc = 0; pc < r->clock.flow->art->ncode; pc++)
        insts += s->on_path[0][pc], waits += s->waits[0][pc];
    if (!r->clock.peer_flow)
        why = why ? why : near(waits, of_rows, "waits of instructions");
    return why ? why : insts > path * (1 + 1e-9) + 0.02 ? "instructions have more than the path" : NULL;
}

// A load, a product that waits for it, a copy that waits for the product, a store: one chain.
static void test_chain(void) {
    static const char text[] = CASE_HEAD
        "dma dst=sbuf[0:0] src=arg0[0] stype=f32 n0=128 n1=512 s0=4096 s1=1 d1=1\n"
        "ldweights src=sbuf[0:0] stype=f32 n0=128 n1=128 wait(q0>=1)\n"
        "matmul dst=psum[0:0] src=sbuf[0:0] stype=f32 n0=128 n1=512 n2=128\n"
        "vector: tensor_copy dst=sbuf[0:4096] src=psum[0:0] dtype=f32 stype=f32 n0=128 n1=512 wait(tensor>=2)\n"
        "dma dst=result0[0] src=sbuf[0:4096] stype=f32 n0=128 n1=512 d0=4096 d1=1 s1=1 queue=1 wait(vector>=1)\nhalt\n";
    Run *r = run_of(text, &trn2, false, 1);
    const Stalls *s = &r->stalls;
    result("a chain: sums", sums(r));
    double load = 0, store = 0;
    for (int k = PATH_WORK; k <= PATH_DMA; k++)
        load += s->path_ns[ENG_COUNT][k], store += s->path_ns[ENG_COUNT + 1][k];
    result("all of the load is on the path", near(load, r->clock.busy_ns[ENG_COUNT], "load"));
    result("all of the store too", near(store, r->clock.busy_ns[ENG_COUNT + 1], "store"));
    result("and the engines", near(s->path_ns[ENG_TENSOR][PATH_WORK] + s->path_ns[ENG_VECTOR][PATH_WORK],
                                   r->clock.busy_ns[ENG_TENSOR] + r->clock.busy_ns[ENG_VECTOR], "work"));
    result("three signals", near(s->path_ns[ENG_COUNT][PATH_SIGNAL] + s->path_ns[ENG_TENSOR][PATH_SIGNAL] +
                                     s->path_ns[ENG_VECTOR][PATH_SIGNAL], 3 * trn2.sem_ns, "signals"));
    const ClockLink *product = &r->clock.links.at[1];
    result("the tensor engine waits for the load", near(s->stall_ns[ENG_TENSOR][ENG_COUNT] + s->stall_ns[ENG_TENSOR][STALL_LATENCY],
                                                        (double)product->begin * 1e-3, "wait"));
    result("the vector engine waits for the product", s->stall_ns[ENG_VECTOR][ENG_TENSOR] > 0 ? NULL : "no");
    result("whom it waits for is told by line", s->rows.n && s->rows.at[0].for_line != STALL_NO_LINE ? NULL : "no");
}

// Of the run's time: by how much two analyses differ where they say what the time goes to.
static double difference(const Stalls *a, const Stalls *b) {
    double d = 0;
    for (int t = 0; t < CLOCK_TRACKS; t++) {
        for (int i = 0; i < STALL_COUNT; i++)
            d = fmax(d, fabs(a->stall_ns[t][i] - b->stall_ns[t][i]));
        for (int k = 0; k < PATH_KINDS; k++)
            d = fmax(d, fabs(a->path_ns[t][k] - b->path_ns[t][k]));
    }
    return a->total_ns > 0 ? d / a->total_ns : 0;
}

static void test_random(int cores, uint64_t seed) {
    const char *why = NULL, *apart = NULL;
    static char shown[200];
    Nests nests = {.seed = seed + (uint64_t)cores, .shape = 2 * seed, .trips = {60, 12}, .barriers = true};
    uint64_t fast_steps = 0, slow_steps = 0;
    double most = 0, mean = 0;
    int n = 0;
    for (int i = 0; i < 60 && !why; i++) {
        Buf text = {.arena = &arena};
        buf_puts(&text, CASE_HEAD);
        nests.gathers = i % 3 == 2;
        if (nests.gathers)
            buf_puts(&text, CASE_GATHER);
        nests.label = 0;
        nests_block(&nests, 0, &text);
        nests_block(&nests, 0, &text);
        buf_puts(&text, "halt\n");
        const ChipFile *chip = i % 2 ? &trn1 : &trn2;
        Run *slow = run_of(buf_cstr(&text), chip, true, cores);
        if (slow->clock.simulated > 400000)
            continue;
        Run *fast = run_of(buf_cstr(&text), chip, false, cores);
        fast_steps += fast->clock.simulated;
        slow_steps += slow->clock.simulated;
        why = sums(slow);
        why = why ? why : fast->clock.approximate ? NULL : sums(fast);
        if (why)
            printf("# program %d\n%s", i, buf_cstr(&text));
        double d = difference(&fast->stalls, &slow->stalls);
        most = fmax(most, d);
        mean += d;
        n++;
    }
    mean /= n;
    printf("# %llu of %llu steps; differences: mean %.5f, most %.5f\n", (unsigned long long)fast_steps,
           (unsigned long long)slow_steps, mean, most);
    if (cores == 1 && fast_steps * 10 > slow_steps * 9)
        why = "hardly anything was multiplied";
    if (most > 1e-5) {
        snprintf(shown, sizeof shown, "%.4f of the run on average, %.4f at most", mean, most);
        apart = shown;
    }
    result(cores == 2 ? "random loops on two cores: sums" : "random loops: sums", why);
    result(cores == 2 ? "multiplied loops on two cores tell the same" : "multiplied loops tell the same as stepped ones", apart);
}

int main(int argc, char **argv) { // [SEED]
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 7;
    jmp_buf jb;
    arena_init(&arena, &ctx);
    if (CTX_TRY(&ctx, jb)) {
        chipfile_load(&ctx, &arena, "trn1", NULL, &trn1);
        chipfile_load(&ctx, &arena, "trn2", NULL, &trn2);
        test_chain();
        test_random(1, seed);
        test_random(2, seed);
    } else {
        result("stalls", ctx.err.text);
    }
    arena_fini(&arena);
    return failures != 0;
}
