// SPDX-License-Identifier: Apache-2.0
// clock_test.c — modelled times against figures worked out by hand, and what must hold for any
// program.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "clock/clock.h"
#include "mach/instance.h"
#include "clock_case.h"

static Ctx ctx;
static Arena arena;
static ChipFile trn1, trn2;

static Artifact *assemble(const char *body) {
    const char *text = arena_printf(&arena, "%s%s", CASE_HEAD, body);
    Artifact *art = artifact_parse(&ctx, &arena, "t.s", text, strlen(text));
    artifact_verify(&ctx, art, "t.s");
    return art;
}

static Clock timed(const char *body, const ChipFile *chip) {
    Clock c;
    clock_run(&ctx, &arena, assemble(body), chip, &(ClockOptions){.events = true}, &c);
    return c;
}

static void test_matmul(void) {
    // 64 pairs: the first weights load before anything, then one matmul of 512 columns after the
    // other
    Buf body = {.arena = &arena};
    for (int i = 0; i < 64; i++)
        buf_puts(&body, "ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128\n"
                        "matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=512 n2=128\n");
    ChipFile warm = trn2;
    warm.pe_ramp_ns = 0;
    Clock c = timed(buf_cstr(&body), &warm);
    double load = 32 / 2.4, column = 512 / 2.4;
    double last = load + 63 * column; // begin of the last one
    result("matmuls hide the weight loads",
           near(c.total_ns, last + 57 + 550 + (128 + 128 + 512) / 2.4, "total"));
    result("tensor engine busy all the time",
           near(c.busy_ns[ENG_TENSOR], load + 64 * column, "busy"));
    result("flops", c.flops == 64.0 * 2 * 128 * 512 * 128 ? NULL : "wrong");
    // a short matmul takes the minimum interval, fp32 four passes
    Clock s = timed("ldweights src=sbuf[0:0] stype=f32 n0=32 n1=32\n"
                    "matmul dst=psum[0:0] src=sbuf[0:0] stype=f32 n0=32 n1=8 n2=32\n",
                    &warm);
    result("minimum interval and fp32 passes",
           near(s.busy_ns[ENG_TENSOR], (4 * 8 + 4 * 64) / 2.4, "busy"));
    // the current limiter: half the rate for the first 3 us
    Clock cold = timed(buf_cstr(&body), &trn2);
    double held = ceil((3000 - 0.001) / (2 * column)) * column;
    result("the current limiter holds the first products back",
           near(cold.busy_ns[ENG_TENSOR], load + 64 * column + held, "busy"));
    // documented: fp32 4096 x 8192 x 8192 on Trainium2, 65,536 matmul instructions of 429.7 ns, two
    // for a product
    double product_ns = 4 * 512 / 2.4;
    result("fp32 rate of the published profile",
           fabs(product_ns / 2 - 429.7) / 429.7 < 0.01 ? NULL : "off by more than 1 %");
}

// Tiles of two products each, taken out by the vector engine, over so many banks of PSUM.
static double rotate(int banks, const ChipFile *chip) {
    Buf body = {.arena = &arena};
    for (int i = 0; i < 32; i++) {
        int at = i % banks * 2048;
        buf_printf(&body, "ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=128\n"
                          "matmul dst=psum[0:%d] src=sbuf[0:0] stype=bf16 n0=128 n1=512 n2=128", at);
        buf_printf(&body, i >= banks ? " wait(vector>=%d)\n" : "\n", i - banks + 1);
        buf_printf(&body, "matmul dst=psum[0:%d] src=sbuf[0:0] stype=bf16 n0=128 n1=512 n2=128 flags=1\n", at);
        buf_printf(&body, "vector: tensor_copy dst=sbuf[0:8192] src=psum[0:%d] dtype=f32 stype=f32 n0=128 n1=512 wait(tensor>=%d)\n",
                   at, 3 * (i + 1));
    }
    return timed(buf_cstr(&body), chip).total_ns;
}

static void test_psum(void) {
    Clock c = timed("vector: tensor_tensor dst=sbuf[0:4096] dtype=f32 src=psum[0:0] stype=f32 src1=sbuf[0:0] ttype=f32 op0=add n0=128 n1=512\n", &trn2);
    result("a sum out of PSUM", near(c.busy_ns[ENG_VECTOR], 512 / 0.96, "busy"));
    c = timed("vector: tensor_tensor dst=psum[0:0] dtype=f32 src=psum[0:0] stype=f32 src1=sbuf[0:0] ttype=f32 op0=add n0=128 n1=512\n", &trn2);
    result("into PSUM it is as long again", near(c.busy_ns[ENG_VECTOR], (2 * 512 + 60) / 0.96, "busy"));
    c = timed("scalar: activation dst=psum[0:2048] dtype=f32 src=psum[0:0] stype=f32 fn=copy a=1.0 n0=128 n1=512\n", &trn1);
    result("for the scalar engine too", near(c.busy_ns[ENG_SCALAR], (2 * 512 + 60) / 1.4, "busy"));
    const char *both = "vector: tensor_copy dst=sbuf[0:0] src=psum[0:0] dtype=f32 stype=f32 n0=128 n1=256\n"
                       "scalar: tensor_copy dst=sbuf[0:4096] src=psum[0:%d] dtype=f32 stype=f32 n0=128 n1=256\n";
    c = timed(arena_printf(&arena, both, 2048), &trn2);
    result("vector and scalar read two banks at once", near(c.total_ns, 256 / 1.2 + 295, "total"));
    c = timed(arena_printf(&arena, both, 1024), &trn2);
    result("and take turns on one", near(c.total_ns, 256 / 0.96 + 256 / 1.2 + 295, "total"));
    ChipFile warm = trn2, still;
    warm.pe_ramp_ns = 0;
    still = warm;
    still.psum_turn_ns = 0;
    double one = rotate(1, &trn2), two = rotate(2, &trn2), four = rotate(4, &trn2), eight = rotate(8, &trn2);
    result("more banks, less waiting", one > 1.2 * two && two > 1.2 * four && four >= eight ? NULL : "they do not help");
    result("the turnaround is paid where a bank comes back", near(rotate(1, &warm) - rotate(1, &still), 32 * 550, "difference"));
}

static void test_elementwise(void) {
    Clock c =
        timed("vector: tensor_copy dst=sbuf[0:0] src=psum[0:0] dtype=f32 stype=f32 n0=128 n1=512\n",
              &trn2);
    result("vector copy", near(c.total_ns, 512 / 0.96 + 150, "total"));
    c = timed(
        "vector: tensor_copy dst=sbuf[0:0] src=sbuf[0:4096] dtype=bf16 stype=bf16 n0=128 n1=1024\n",
        &trn2);
    result("vector fast mode", near(c.busy_ns[ENG_VECTOR], 1024 / 4 / 0.96, "busy"));
    c = timed(
        "vector: tensor_copy dst=sbuf[0:0] src=sbuf[0:4096] dtype=bf16 stype=bf16 n0=128 n1=1024\n",
        &trn1);
    result("vector has no fast mode on trn1", near(c.busy_ns[ENG_VECTOR], 1024 / 1.12, "busy"));
    c = timed("scalar: tensor_copy dst=sbuf[0:0] src=psum[0:0] dtype=f32 stype=f32 n0=128 n1=1\n",
              &trn1);
    result(
        "scalar, one element (159 ns in the published profile)",
        fabs(c.total_ns - (64 / 1.4 + 158)) < 0.02 ? NULL : "off");
    c = timed("gpsimd: memset dst=sbuf[0:0] dtype=f32 n0=128 n1=512\n", &trn2);
    result("gpsimd fill", near(c.total_ns, (150 + 512) / 1.2, "total"));
}

static void test_semaphores(void) {
    const char *work = "vector: memset dst=sbuf[0:0] dtype=f32 n0=128 n1=960\n"; // 1000 ns + 150
    Clock c = timed(arena_printf(&arena,
                                 "%sscalar: tensor_copy dst=sbuf[0:0] src=sbuf[0:0] dtype=f32 "
                                 "stype=f32 n0=128 n1=1200 wait(vector>=1)\n",
                                 work),
                    &trn2);
    result("a wait adds up", near(c.total_ns, 1150 + 18 + 1000 + 295, "total"));
    c = timed(arena_printf(&arena,
                           "%sscalar: tensor_copy dst=sbuf[0:8192] src=sbuf[0:8192] dtype=f32 "
                           "stype=f32 n0=128 n1=1200\n",
                           work),
              &trn2);
    result("without it they run side by side", near(c.total_ns, 1000 + 295, "total"));
    c = timed(arena_printf(&arena, "%s%s", work, work), &trn2);
    result("one engine is in order", near(c.total_ns, 2000 + 150, "total"));
    c = timed(arena_printf(&arena, "%sbarrier\n%s", work, work), &trn2);
    result("a barrier drains", near(c.total_ns, 1150 + 90 + 1150, "total"));
}

static void test_dma(void) {
    // 128 partitions x 4 KiB: 8 partitions an engine
    Clock c =
        timed("dma dst=sbuf[0:0] src=arg0[0] stype=f32 n0=128 n1=1024 s0=4096 s1=1 d1=1\n", &trn2);
    double hbm = 128 * 4096 / 362.5;
    result("a transfer at full width", // 16 engines x 23 GB/s is just above the HBM share
           near(c.total_ns, 1000 + fmax(8 * 4096 / 23.0, hbm) + 280, "total"));
    c = timed("dma dst=sbuf[0:0] src=arg0[0] stype=f32 n0=8 n1=8192 s0=4096 s1=1 d1=1\n", &trn2);
    result("eight partitions use one engine",
           near(c.total_ns, 1000 + 8 * 32768 / 23.0 + 280, "total"));
    c = timed("dma dst=sbuf[0:0] src=arg0[0] stype=f32 n0=128 n1=16 s0=4096 s1=2 d1=1\n", &trn2);
    result("small descriptors cost as much as efficient ones",
           near(c.total_ns, 1000 + 8 * 16 * 161 / 23.0 + 280, "total"));
    // two transfers of one queue are issued 835 ns apart, those of two queues are not
    const char *small =
        "dma dst=sbuf[0:0] src=arg0[0] stype=f32 n0=8 n1=16 s0=4096 s1=1 d1=1 queue=%d\n";
    double one = 8 * 161 / 23.0;
    const char *same = arena_printf(&arena, small, 0);
    c = timed(arena_printf(&arena, "%s%s", same, same), &trn2);
    result("issue interval of a queue", near(c.total_ns, 1000 + 835 + one + 280, "total"));
    c = timed(arena_printf(&arena, "%s%s", same, arena_printf(&arena, small, 1)), &trn2);
    result("two queues share an engine", near(c.total_ns, 1000 + 2 * one + 130 + 280, "total"));
    c = timed(arena_printf(&arena, "%s%s", same, arena_printf(&arena, small, 1)), &trn1);
    result("each chip has its own gap", near(c.total_ns, 1000 + 2 * 8 * 127 / 18.1 + 35 + 280, "total"));
    // neighbouring elements to neighbouring partitions: a transposing DMA where there is one
    const char *turned =
        "dma dst=sbuf[0:0] src=arg0[0] stype=f32 n0=128 n1=1024 s0=1 s1=4096 d1=1\n";
    c = timed(turned, &trn2);
    result("transposing DMA",
           near(c.total_ns, 1000 + 128 * 4096 / 16 / (23 * 0.9) + 280, "total"));
    c = timed(turned, &trn1);
    result("element by element on trn1",
           near(c.total_ns, 1000 + 8 * 1024 * 127 / 18.1 + 280, "total"));
    c = timed("dma dst=result0[0] src=arg0[0] stype=f32 n0=16777216\n", &trn2);
    result("memory to memory counts HBM twice",
           near(c.total_ns, 1000 + 2 * 67108864 / 362.5 + 280, "total"));
    result("HBM bytes", c.hbm_bytes == 2 * 67108864.0 ? NULL : "wrong");
    // a transfer that converts has its own width on each side
    c = timed("dma dst=result0[0] src=arg0[0] dtype=f32 stype=bf16 n0=16777216\n", &trn2);
    result("widening writes more than it reads", near(c.total_ns, 1000 + 6 * 16777216 / 362.5 + 280, "total"));
    result("its HBM bytes", c.hbm_bytes == 6 * 16777216.0 ? NULL : "wrong");
    c = timed("dma dst=sbuf[0:0] src=arg0[0] dtype=f32 stype=bf16 n0=8 n1=8192 s0=8192 s1=1 d1=1\n", &trn2);
    result("the wider side holds the engine", near(c.total_ns, 1000 + 8 * 32768 / 23.0 + 280, "total"));
    result("HBM sees the narrow one", c.hbm_bytes == 8 * 16384.0 ? NULL : "wrong");
    c = timed("dma dst=result0[0] src=sbuf[0:0] dtype=f32 stype=bf16 op0=add n0=8 n1=512 d0=512 d1=1 s1=1\n", &trn2);
    result("a sum reads and writes what it adds to", c.hbm_bytes == 2 * 8 * 512 * 4.0 ? NULL : "wrong");
    ChipFile slow = trn2;
    slow.hbm_bw_core = 100;
    c = timed("dma dst=result0[0] src=arg0[0] stype=f32 n0=16777216\n", &slow);
    result("a slower HBM shows", near(c.total_ns, 1000 + 2 * 67108864 / 100.0 + 280, "total"));
}

static void test_kernel(void) {
    Clock c =
        timed(".kernel 0 stablehlo.add (arg0[0]: f32[1024,1024], scratch[0]: f32[1024,1024]) -> "
              "(result0[0]: f32[1024,1024])\nkernel imm=0\n",
              &trn2);
    double memory = 8 * 1048576 / (307 / 2.0), compute = 1048576 / 128 / 1.2;
    result("a kernel bound by memory",
           near(c.total_ns, 150 / 1.2 + 1280 + fmax(memory, compute), "total"));
    c = timed(".kernel 0 stablehlo.power (arg0[0]: f32[1024,1024], scratch[0]: f32[1024,1024]) -> "
              "(result0[0]: f32[1024,1024])\nkernel imm=0\n",
              &trn2);
    result("a kernel bound by arithmetic", c.total_ns > 1280 + 20 * compute ? NULL : "too cheap");
    c = timed(
        ".kernel 0 stablehlo.dot_general (arg0[0]: f32[64,128], scratch[0]: f32[128,32]) -> "
        "(result0[0]: f32[64,32]) {lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
        "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}\nkernel imm=0\n",
        &trn2);
    result("flops of a product on gpsimd", c.flops == 2.0 * 64 * 128 * 32 ? NULL : "wrong");
    result("never free",
           timed(".kernel 0 stablehlo.reshape (arg0[0]: f32[1]) -> (result0[0]: f32[1,1])\n"
                 "kernel imm=0\n",
                 &trn2)
                       .total_ns > 100
               ? NULL
               : "free");
}

// An all-reduce or all-gather of `bytes` over `apart` groups of `n` ranks that lie so far from each other.
static double collective_of(const char *op, int n, int apart, long bytes, const ChipFile *chip) {
    char ids[8192], text[12000];
    int used = 0;
    bool gather = !strcmp(op, "all_gather");
    for (int i = 0; i < n * apart; i++)
        used += snprintf(ids + used, sizeof ids - (size_t)used, "%s%d", i ? ", " : "", i % n * apart + i / n);
    snprintf(text, sizeof text,
             ".tensor a f32[%ld]\n.tensor b f32[%ld]\n.kernel 0 stablehlo.%s (scratch[0]: f32[%ld]) -> (scratch[%ld]: f32[%ld]) {%schannel_id = 0, replica_groups = x%d[%s], "
             "use_global_device_ids = false} %s\ncollective imm=0 queue=0\n",
             bytes / 4, bytes / 4, op, gather ? bytes / 4 / n : bytes / 4, bytes, bytes / 4, gather ? "all_gather_dim = 0, " : "", n, ids,
             gather ? "" : "region(f32, f32, f32) inputs 2 { r2 = stablehlo.add r0, r1; return r2 }");
    return timed(text, chip).total_ns;
}

// Passes have a latency each, the start is one; a chip's own cores are nearer than those of others.
static void test_passes(void) {
    double sum = collective_of("all_reduce", 16, 1, 4096, &trn1), gather = collective_of("all_gather", 16, 1, 4096, &trn1);
    ChipFile later = trn1;
    later.collective_start_ns += 1000;
    result("an all-reduce starts once", near(collective_of("all_reduce", 16, 1, 4096, &later), sum + 1000, "total"));
    result("and passes twice", sum > 1.9 * gather && sum < 2 * gather ? NULL : "it does not");
    double pair = collective_of("all_reduce", 2, 1, 4096, &trn1);
    result("two cores of a chip (58 us published)", fabs(pair / 58e3 - 1) < 0.05 ? NULL : "too far off");
    result("cores of two chips are further apart",
           collective_of("all_reduce", 2, 2, 4096, &trn1) > 4 * pair ? NULL : "they are not");
    const char *why = NULL;
    ChipFile flat = trn1;
    flat.torus_x = 0;
    for (long bytes = 1024; bytes <= 1L << 29 && !why; bytes *= 2) // one algorithm after the other, never back; on a switch:
        for (int n = 4; n <= 32 && !why; n *= 2) {
            double t = collective_of("all_reduce", n, 1, bytes, &flat); // more of a torus has more links
            why = collective_of("all_reduce", n, 1, 2 * bytes, &flat) < t        ? "more bytes, less time"
                  : collective_of("all_reduce", n, 1, 2 * bytes, &trn1) < collective_of("all_reduce", n, 1, bytes, &trn1) ? "more bytes of a torus, less time"
                  : collective_of("all_reduce", 2 * n, 1, bytes, &flat) < t ? "more ranks, less time"
                                                                             : NULL;
        }
    result("larger is never quicker", why);
    // the cores of a pair do one collective together: its HBM traffic is there once
    Artifact *art = assemble(".kernel 0 stablehlo.all_gather (arg0[0]: f32[2048,4096]) -> (result0[0]: f32[4096,4096]) "
                             "{all_gather_dim = 0, channel_id = 0, replica_groups = x2[0, 1], use_global_device_ids = false}\n"
                             "collective imm=0 queue=0\n");
    ChipFile slow = trn2;
    slow.hbm_bw_core = 1, slow.hbm_shared = 1;
    Clock c;
    clock_run(&ctx, &arena, art, &slow, &(ClockOptions){.cores = 2}, &c);
    result("a pair's collective is one", near(c.total_ns, 9 + 1.5 * 67108864 / 2, "total"));
}

// Collectives wait in a sequencer of their own: the sync engine's next transfer does not wait with them.
static void test_streams(void) {
    const char *head = ".kernel 0 stablehlo.all_reduce (scratch[0]: f32[1024]) -> (scratch[4096]: f32[1024]) {channel_id = 0, replica_groups = x16[0, 1, 2, 3, 4, "
                       "5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], use_global_device_ids = false} region(f32, f32, f32) inputs 2 { r2 = stablehlo.add r0, r1; return r2 }\n"
                       "vector: tensor_copy dst=sbuf[0:0] src=sbuf[0:65536] dtype=f32 stype=f32 n0=128 n1=16384\n";
    const char *load = "sync: dma dst=sbuf[0:0] src=arg0[0] stype=f32 n0=1 n1=8 s1=1 d1=1 queue=0\n";
    Clock c = timed(arena_printf(&arena, "%scollective imm=0 queue=12 wait(vector>=1)\n%s", head, load), &trn2);
    double load_ns = 0, coll_ns = 0;
    for (uint32_t i = 0; i < c.events.n; i++)
        *(c.events.at[i].track == ENG_COUNT ? &load_ns : &coll_ns) = c.events.at[i].begin_ns;
    result("sync goes on beside a collective that waits", near(load_ns, 1000, "begin of the load"));
    result("the collective waits", coll_ns > 16384 / 0.96 ? NULL : "it does not");
    c = timed(arena_printf(&arena, "%sstream_wait queue=12 wait(vector>=1)\ncollective imm=0 queue=12\n%s", head, load), &trn2);
    for (uint32_t i = 0; i < c.events.n; i++)
        *(c.events.at[i].track == ENG_COUNT ? &load_ns : &coll_ns) = c.events.at[i].begin_ns;
    result("so do both beside a stream_wait", load_ns == 1000 && coll_ns > 16384 / 0.96 ? NULL : "they do not");
}

// Collectives and transfers share the DMA engines: a load beside a collective's bytes takes longer by what these hold, and a
// collective waits for what the engines have to do when its bytes begin.
static void test_rings(void) {
    ChipFile chip = trn2;
    chip.hbm_bw_core = 1e5;
    chip.collective_start_ns = chip.collective_ns = chip.collective_step_ns = chip.collective_hop_ns = chip.gpsimd_hbm_ns = 0;
    chip.link_bw = chip.link_step_bw = chip.link_mesh_bw = 92; // a quarter of 16 x 23
    const char *gather = CASE_GATHER "collective imm=0 queue=12\n";
    const char *load = "vector: tensor_copy dst=sbuf[0:0] src=sbuf[0:65536] dtype=f32 stype=f32 n0=128 n1=64\n"
                       "dma dst=sbuf[0:0] src=arg0[0] stype=f32 n0=128 n1=128 s0=4096 s1=1 d1=1 queue=0 wait(vector>=1)\n";
    double bytes = 4.0 * 262144 * 15 / 16, moved = bytes / 92, free = 128 * 128 * 4 / 368.0;
    Clock c = timed(arena_printf(&arena, "%s%s", gather, load), &chip);
    double begin = 0, end = 0;
    for (uint32_t i = 0; i < c.events.n; i++)
        if (c.events.at[i].track == ENG_COUNT)
            begin = c.events.at[i].begin_ns, end = c.events.at[i].end_ns;
    result("a load beside a collective has the rest of the engines", near((end - begin) / free, 4 / 3.0, "its time over that alone"));
    double alone = timed(gather, &chip).total_ns;
    result("alone it takes its bytes over the links", near(alone, 9 + 150 / 1.2 + moved, "total"));
    // 64 loads of 16 MB: the engines have work for longer than the collective's bytes take
    Buf text = {.arena = &arena};
    buf_puts(&text, CASE_GATHER);
    for (int i = 0; i < 64; i++)
        buf_puts(&text, "dma dst=sbuf[0:0] src=arg0[0] stype=f32 n0=128 n1=4096 s0=4096 s1=1 d1=1 queue=0\n");
    buf_puts(&text, "vector: wait wait(q0>=1)\ncollective imm=0 queue=12 wait(vector>=1)\n");
    c = timed(buf_cstr(&text), &chip);
    for (uint32_t i = 0; i < c.events.n; i++)
        if (c.events.at[i].track == CLOCK_TRACKS - 1)
            begin = c.events.at[i].begin_ns, end = c.events.at[i].end_ns;
    result("a collective behind transfers waits for the engines", end - begin > alone + 1000 ? NULL : "it does not");
    // HBM too: a load has what a collective's bytes, which come at the links' pace, leave of it, and those of one that waits for another take nothing yet
    chip.hbm_bw_core = 184;
    double held = 4.0 * 262144 * 17 / 16 / 184 / moved;
    c = timed(arena_printf(&arena, "%s%s%s", gather, "collective imm=0 queue=12\n", load), &chip);
    for (uint32_t i = 0; i < c.events.n; i++)
        if (c.events.at[i].track == ENG_COUNT)
            begin = c.events.at[i].begin_ns, end = c.events.at[i].end_ns;
    result("a load beside collectives has the rest of HBM", near((end - begin) / (2 * free), 1 / (1 - held), "its time over that alone"));
}

// More devices than a machine has: the network's hops and bytes come on top, and never the other way round.
static void test_machines(void) {
    Instance *rows;
    uint32_t n = instances_load(&ctx, &arena, NULL, &rows), at = 0;
    while (at < n && strcmp(rows[at].name, "trn1.32xlarge"))
        at++;
    ChipFile many = trn1;
    instance_network(&rows[at], &many);
    const char *const ops[] = {"all_reduce", "all_gather"};
    for (int o = 0; o < 2; o++) {
        const char *why = NULL;
        for (long bytes = 4096; bytes <= 1L << 30 && !why; bytes *= 32) {
            double one = collective_of(ops[o], 32, 1, bytes, &many), before = one;
            if (one != collective_of(ops[o], 32, 1, bytes, &trn1))
                why = "inside one machine nothing changes";
            for (int ranks = 64; ranks <= 512 && !why; ranks *= 2) {
                double t = collective_of(ops[o], ranks, 1, bytes, &many);
                double net = 15e3 * (o ? 1 : 2) + (o ? 1 : 2) * (1 - 32.0 / ranks) * (double)bytes / 32 / 3.125;
                why = t <= before ? "more machines, no more time" : t < net ? "quicker than the network" : NULL;
                if (t <= collective_of(ops[o], ranks, 1, bytes, &trn1))
                    why = "no dearer than without a network";
                before = t;
            }
            if (!why && collective_of(ops[o], 16, 32, bytes, &many) < collective_of(ops[o], 16, 1, bytes, &many))
                why = "a rank on each machine is nearer than one machine";
        }
        for (long bytes = 1024; bytes <= 1L << 28 && !why; bytes *= 2)
            if (collective_of(ops[o], 64, 1, bytes, &many) > collective_of(ops[o], 64, 1, 2 * bytes, &many))
                why = "more bytes, less time";
        result(ops[o], why);
    }
}

static bool same(const Clock *a, const Clock *b) {
    return a->total_ns == b->total_ns && !memcmp(a->busy_ns, b->busy_ns, sizeof a->busy_ns) &&
           !memcmp(a->insts, b->insts, sizeof a->insts) && a->flops == b->flops &&
           a->hbm_bytes == b->hbm_bytes && a->unknown_loops == b->unknown_loops;
}

static const char loop_body[] =
    "dma dst=sbuf[0:0] src=arg0[0] stype=f32 n0=128 n1=512 s0=4096 s1=1 d1=1\n"
    "ldweights src=sbuf[0:0] stype=f32 n0=128 n1=128 wait(q0>=1)\n"
    "matmul dst=psum[0:0] src=sbuf[0:0] stype=f32 n0=128 n1=512 n2=128\n"
    "vector: tensor_copy dst=sbuf[0:4096] src=psum[0:0] dtype=f32 stype=f32 n0=128 n1=512 "
    "wait(tensor>=2)\n"
    "dma dst=result0[0] src=sbuf[0:4096] stype=f32 n0=128 n1=512 d0=4096 d1=1 s1=1 queue=1 "
    "wait(vector>=1)\n";

// Loops stepped through and loops multiplied give the same picoseconds.
static void test_fast_forward(int cores) {
    const char *const programs[] = {
        // a barrier in every iteration, as the compiler emits loops
        "barrier\n.loop a b trips=%d\na: reg_load reg=0 src=arg0[0] stype=i32\nbranch op0=equal imm=b "
        "reg=0 "
        "value=0\n%sbarrier\njump imm=a\nb: halt\n",
        // none: engines run into the next iteration
        ".loop a b trips=%d\na: nop\n%sjump imm=a\nb: halt\n",
        // two loops, one in the other
        "barrier\n.loop o e trips=3\n.loop a b trips=%d\no: nop\nbarrier\na: nop\n%sbarrier\n"
        "branch op0=equal imm=a reg=0 value=0\nb: vector: nop\nbarrier\nbranch op0=equal imm=o reg=1 value=0\ne: "
        "halt\n",
        // no branch at all
        ".loop a b trips=%d\na: nop\n%sb: halt\n",
    };
    const char *why = NULL;
    static char shown[200];
    for (size_t i = 0; i < sizeof programs / sizeof *programs && !why; i++)
        for (int trips = 1; trips <= 45 && !why; trips += trips < 8 ? 1 : 8) {
            char *text = arena_alloc(&arena, 4096);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(text, 4096, programs[i], trips, loop_body);
#pragma GCC diagnostic pop
            Artifact *art = assemble(text);
            Clock fast, slow;
            clock_run(&ctx, &arena, art, &trn2, &(ClockOptions){.cores = cores}, &fast);
            clock_run(&ctx, &arena, art, &trn2, &(ClockOptions){.cores = cores, .stepwise = true}, &slow);
            if (!same(&fast, &slow)) {
                snprintf(shown, sizeof shown, "program %zu, %d trips: %.3f and %.3f ns", i, trips,
                         fast.total_ns, slow.total_ns);
                why = shown;
            }
            if (i != 1 && i < 3 && trips == 40 && fast.simulated >= slow.simulated)
                why = "nothing was multiplied"; // without barriers sync runs ahead: never steady
        }
    result(cores == 2 ? "multiplied loops equal stepped ones, on two cores" : "multiplied loops equal stepped ones", why);
}

#define SEED 7
enum { ALONE, TWICE, SHARED, APART, GATHERS, PAIRS, KINDS }; // one core; two with one program; two that meet; two with loops of their own; one and two with collectives

static Artifact *random_program(int kind, uint64_t *seed, Buf *text) {
    Nests n = {.seed = *seed, .trips = {100, 100}, .meets = kind == SHARED, .gathers = kind >= GATHERS, .signals = true};
    buf_puts(text, CASE_HEAD);
    if (n.gathers)
        buf_puts(text, CASE_GATHER);
    for (int core = 0; core < (kind == SHARED || kind == APART || kind == PAIRS ? 2 : 1); core++) {
        n.shape = ~*seed + (core && kind == APART);
        if (core)
            buf_puts(text, "halt\n.core 1\n");
        nests_block(&n, 0, text);
        nests_block(&n, 0, text);
    }
    *seed = n.seed;
    buf_puts(text, "halt\n");
    return artifact_parse(&ctx, &arena, "t.s", (const char *)text->at, text->n);
}

// Device loops: random nests, multiplied and stepped through.
static void test_random_loops(int kind) {
    static const char *const names[] = {"random device loops, multiplied and stepped", "… by two cores", "… by two that meet", "… by two that do not",
                                        "… with collectives", "… by two with collectives"};
    const char *why = NULL;
    static char shown[200];
    uint64_t fast_steps = 0, slow_steps = 0;
    uint64_t seed = SEED + (uint64_t)kind;
    for (int i = 0; i < (kind == ALONE ? 60 : 20) && !why; i++) {
        Buf text = {.arena = &arena};
        Artifact *art = random_program(kind, &seed, &text);
        ClockOptions how = {.cores = kind == ALONE || kind == GATHERS ? 1 : 2}, steps = {.cores = how.cores, .stepwise = true};
        Clock fast, slow;
        clock_run(&ctx, &arena, art, i % 2 ? &trn1 : &trn2, &how, &fast);
        clock_run(&ctx, &arena, art, i % 2 ? &trn1 : &trn2, &steps, &slow);
        fast_steps += fast.simulated;
        slow_steps += slow.simulated;
        if (!same(&fast, &slow)) {
            snprintf(shown, sizeof shown, "program %d: %.3f and %.3f ns", i, fast.total_ns, slow.total_ns);
            why = shown;
            printf("%s", buf_cstr(&text));
        }
    }
    if (!why && kind < SHARED && fast_steps * 10 > slow_steps * 9)
        why = "hardly anything was multiplied";
    printf("# %llu of %llu steps\n", (unsigned long long)fast_steps, (unsigned long long)slow_steps);
    result(names[kind], why);
}

// Two cores with programs of their own: long loops take a bounded number of steps, and the time of every one of them.
static void test_pair_loops(void) {
    static const char rows[] = "dma dst=sbuf[0:0] src=arg0[0] stype=f32 n0=128 n1=512 s0=4096 s1=1 d1=1 wait(vector-0)\n"
                               "vector: tensor_copy dst=sbuf[0:4096] src=sbuf[0:0] dtype=f32 stype=f32 n0=128 n1=%d wait(q0-0)\n";
    static const char meet[] = "gpsimd: core_barrier imm=0 wait(vector-0)\nsync: wait wait(gpsimd-0)\n";
    const struct {
        const char *name;
        int columns1, trips1; // of the second core's loop: 0: it has none, -1: as many as the first core's
        bool barrier, meets, meets_behind;
    } cases[] = {
        {"two cores that meet in every iteration", 256, -1, false, true, false},
        {"… with a barrier, as the compiler emits loops", 256, -1, true, true, false},
        {"two cores with a loop each meet behind it", 500, -1, false, false, true},
        {"one waits for the other's loop to end", 256, 0, false, false, true},
        {"the other's loop is shorter", 256, 7, false, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *why = NULL;
        for (int64_t many = 1; many <= 1000000000 && !why; many *= 10) {
            int trips = (int)many;
            Buf text = {.arena = &arena};
            buf_puts(&text, CASE_HEAD);
            for (int core = 0; core < 2; core++) {
                int n = !core || cases[i].trips1 < 0 ? trips : cases[i].trips1;
                buf_printf(&text, "%sb%d: loop imm=e%d reg=r0 limit=%d step=1\n", core ? "halt\n.core 1\n" : "", core, core, n);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                buf_printf(&text, rows, core ? cases[i].columns1 : 500);
#pragma GCC diagnostic pop
                buf_printf(&text, "%s%se%d: endloop imm=b%d\n%s", cases[i].meets ? meet : "", cases[i].barrier ? "barrier\n" : "", core, core,
                           cases[i].meets_behind ? meet : "");
            }
            buf_puts(&text, "halt\n");
            Artifact *art = artifact_parse(&ctx, &arena, "t.s", (const char *)text.at, text.n);
            Clock fast, slow;
            clock_run(&ctx, &arena, art, &trn2, NULL, &fast);
            if (trips <= 1000) {
                clock_run(&ctx, &arena, art, &trn2, &(ClockOptions){.stepwise = true}, &slow);
                why = same(&fast, &slow) ? NULL : arena_printf(&arena, "%d trips: %.3f, stepped %.3f ns", trips, fast.total_ns, slow.total_ns);
            }
            if (fast.approximate || fast.simulated > 2000)
                why = arena_printf(&arena, "%d trips took %llu steps", trips, (unsigned long long)fast.simulated);
        }
        result(cases[i].name, why);
    }
}

static void test_huge_loops(void) {
    Buf text = {.arena = &arena};
    for (int i = 0; i < 60; i++)
        buf_printf(&text, ".loop a%d b%d trips=1000000000\n", i, i);
    for (int i = 0; i < 60; i++)
        buf_printf(&text, "a%d:\n", i);
    buf_puts(&text, "barrier\nvector: nop\n");
    for (int i = 59; i >= 0; i--)
        buf_printf(&text, "branch op0=equal imm=a%d reg=0 value=0\nb%d:\n", i, i);
    Clock c = timed(buf_cstr(&text), &trn2);
    result("sixty nested loops of a billion",
           c.total_ns > 1e9 && isfinite(c.total_ns) ? NULL : "no");
    clock_run(&ctx, &arena, assemble(buf_cstr(&text)), &trn2, &(ClockOptions){.cores = 2, .steps_max = 200000}, &c);
    result("… on two cores", c.total_ns > 1e9 && isfinite(c.total_ns) ? NULL : "no");
    c = timed(".loop a b\na: vector: nop\njump imm=a\nb: halt\n", &trn2);
    result("a loop of unknown length counts once and is told",
           c.unknown_loops == 1 && c.insts[ENG_VECTOR] == 1 ? NULL : "no");
}

static void test_invariants(void) {
    Clock c = timed(loop_body, &trn2);
    const char *why = NULL;
    for (int i = 0; i < CLOCK_TRACKS; i++)
        if (c.busy_ns[i] > c.total_ns)
            why = "busier than the run is long";
    for (uint32_t i = 0; i < c.events.n; i++)
        if (c.events.at[i].end_ns < c.events.at[i].begin_ns || c.events.at[i].end_ns > c.total_ns)
            why = "an event outside the run";
    if (c.events.n != 6 || c.insts[ENG_COUNT] != 1 || c.insts[ENG_COUNT + 1] != 1)
        why = "events are missing";
    result("invariants", why);
}

static void test_trace(void) {
    Artifact *art =
        assemble(".loc 1 \"my \\\"net\\\".py\":12:3 op=stablehlo.dot_general \"jit(f)\"\n"
                 "vector: nop @1\ndma dst=sbuf[0:0] src=arg0[0] stype=f32 n0=8 queue=2 @1\n");
    Clock c;
    clock_run(&ctx, &arena, art, &trn2, &(ClockOptions){.events = true}, &c);
    Buf out = {.arena = &arena};
    clock_trace(art, &trn2, &c, &out);
    const char *text = buf_cstr(&out);
    static const char *const wanted[] = {
        "\"traceEvents\":[",
        "\"name\":\"thread_name\"",
        "\"dma queue 2\"",
        "\"vector\"",
        "\"file\":\"my \\\"net\\\".py\",\"line\":12",
        "\"op\":\"dot_general\"",
        "\"name\":\"jit(f)\"",
        "\"ph\":\"X\"",
    };
    const char *why = NULL;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!strstr(text, wanted[i]))
            why = wanted[i];
    int depth = 0;
    bool quoted = false;
    for (const char *p = text; *p; p++) { // balanced outside of strings
        if (quoted && *p == '\\')
            p++;
        else if (*p == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
    }
    result("trace", why ? why : depth || quoted ? "not balanced" : NULL);
}

static void test_speed(void) {
    Buf text = {.arena = &arena};
    for (int i = 0; i < 30000; i++)
        buf_printf(
            &text,
            "dma dst=sbuf[0:0] src=arg0[0] stype=f32 n0=128 n1=512 s0=4096 s1=1 d1=1 queue=%d\n"
            "ldweights src=sbuf[0:0] stype=f32 n0=128 n1=128 wait(q%d>=%d)\n"
            "matmul dst=psum[0:0] src=sbuf[0:0] stype=f32 n0=128 n1=512 n2=128\n"
            "vector: tensor_copy dst=sbuf[0:4096] src=psum[0:0] dtype=f32 stype=f32 n0=128 "
            "n1=512 wait(tensor>=%d)\n",
            i % 4, i % 4, i / 4 + 1, 2 * i + 2);
    Artifact *art = assemble(buf_cstr(&text));
    Clock c;
    clock_t begin = clock();
    clock_run(&ctx, &arena, art, &trn2, NULL, &c);
    double s = (double)(clock() - begin) / CLOCKS_PER_SEC;
    printf("# %.2f million instructions a second\n", (double)art->ncode / s * 1e-6);
    result("a long straight program", c.insts[ENG_VECTOR] == 30000 ? NULL : "instructions are missing");
}

int main(void) {
    jmp_buf jb;
    arena_init(&arena, &ctx);
    if (CTX_TRY(&ctx, jb)) {
        chipfile_load(&ctx, &arena, "trn1", NULL, &trn1);
        chipfile_load(&ctx, &arena, "trn2", NULL, &trn2);
        test_matmul();
        test_psum();
        test_elementwise();
        test_semaphores();
        test_dma();
        test_kernel();
        test_passes();
        test_streams();
        test_rings();
    test_machines();
        test_fast_forward(1);
        test_fast_forward(2);
        for (int kind = 0; kind < KINDS; kind++)
            test_random_loops(kind);
        test_pair_loops();
    test_huge_loops();
        test_invariants();
        test_trace();
        test_speed();
    } else {
        result("clock", ctx.err.text);
    }
    arena_fini(&arena);
    return failures != 0;
}
