// SPDX-License-Identifier: Apache-2.0
// clock_case.h — programs for the tests of the clock and of what it tells: nests of device loops with random instructions in them.
#ifndef OTRN_TESTS_CLOCK_CASE_H
#define OTRN_TESTS_CLOCK_CASE_H

#include <math.h>
#include <stdio.h>

#include "base/bytes.h"
#include "unit.h"

#define CASE_HEAD ".scratch 67108864\n.arg f32[4096,4096]\n.result f32[4096,4096]\n"

#define CASE_GATHER                                                                                                    \
    ".kernel 0 stablehlo.all_gather (scratch[0]: f32[16384]) -> (scratch[65536]: f32[262144]) {all_gather_dim = 0, "   \
    "channel_id = 0, replica_groups = x16[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], "                     \
    "use_global_device_ids = false}\n"

static inline const char *near(double have, double want, const char *what) {
    static char shown[200];
    if (fabs(have - want) <= 0.02 + 1e-5 * want) // picoseconds are rounded
        return NULL;
    snprintf(shown, sizeof shown, "%s is %.3f, not %.3f", what, have, want);
    return shown;
}

typedef struct Nests {
    uint64_t seed;     // of what is in the loops
    uint64_t shape;    // of the loops and their lengths alone, and with it of where two cores meet
    uint32_t trips[2]; // at most, of an outer loop and of one inside it
    bool meets;        // the cores of a pair, in the loops
    bool barriers;     // of all engines, here and there
    bool gathers;      // kernel 0 is CASE_GATHER
    bool signals;      // semaphores of the program's own
    int label;
} Nests;

// One random instruction that counts back on whatever it likes.
static inline void nests_line(Nests *n, Buf *out) {
    static const char *const forms[] = {
        "dma dst=sbuf[0:0] src=arg0[0] stype=f32 n0=128 n1=%u s0=4096 s1=1 d1=1 queue=%u",
        "gpsimd: dma dst=result0[0] src=sbuf[0:4096] stype=f32 n0=128 n1=%u d0=4096 d1=1 s1=1 queue=%u",
        "vector: tensor_copy dst=sbuf[0:4096] src=psum[0:0] dtype=f32 stype=f32 n0=128 n1=%u",
        "scalar: tensor_copy dst=sbuf[0:8192] src=sbuf[0:4096] dtype=f32 stype=f32 n0=128 n1=%u",
        "gpsimd: tensor_copy dst=sbuf[0:8192] src=sbuf[0:4096] dtype=bf16 stype=bf16 n0=128 n1=%u",
        "ldweights src=sbuf[0:0] stype=bf16 n0=128 n1=%u\n"
        "matmul dst=psum[0:0] src=sbuf[0:0] stype=bf16 n0=128 n1=256 n2=%u",
    };
    if (n->gathers && rng_below(&n->seed, 5) == 0) {
        buf_printf(out, "collective imm=0 queue=%u wait(vector-%u, q1-2)\n", 12 + rng_below(&n->seed, 2), rng_below(&n->seed, 3));
        buf_printf(out, "vector: wait wait(q12-%u)\n", 1 + rng_below(&n->seed, 2));
        return;
    }
    static const char *const sems[] = {"tensor", "vector", "scalar", "gpsimd", "q0", "q1"};
    uint32_t kind = rng_below(&n->seed, 6), size = 1 + rng_below(&n->seed, kind == 5 ? 128 : 512);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    buf_printf(out, forms[kind], size, kind == 5 ? size : rng_below(&n->seed, 2));
#pragma GCC diagnostic pop
    if (rng_below(&n->seed, 2))
        buf_printf(out, " wait(%s-%u)", sems[rng_below(&n->seed, 6)], rng_below(&n->seed, 4));
    if (n->signals && rng_below(&n->seed, 8) == 0)
        buf_printf(out, " signal(s%u+1)", rng_below(&n->seed, 2));
    buf_puts(out, "\n");
}

static inline void nests_block(Nests *n, int depth, Buf *out);

static inline void nests_loop(Nests *n, int depth, Buf *out) {
    int l = n->label++;
    buf_printf(out, "b%d: loop imm=e%d reg=r%d limit=%u step=%u\n", l, l, depth, 1 + rng_below(&n->shape, n->trips[depth]),
               1 + rng_below(&n->shape, 2));
    nests_block(n, depth + 1, out);
    if (n->meets && rng_below(&n->shape, 2))
        buf_printf(out, "gpsimd: core_barrier imm=0 wait(vector-%u)\nvector: wait wait(gpsimd-0)\n", rng_below(&n->seed, 3));
    if (rng_below(&n->seed, 8)) { // keeps the engines within reach of each other
        uint32_t back[5];
        for (int i = 0; i < 5; i++)
            back[i] = rng_below(&n->seed, i < 4 ? 3 : 4);
        buf_printf(out,
                   "tensor: wait wait(vector-%u)\nvector: wait wait(tensor-%u, scalar-1)\n"
                   "scalar: wait wait(gpsimd-%u, q0-1)\ngpsimd: wait wait(vector-%u, q1-2)\n"
                   "sync: wait wait(vector-2, tensor-%u)\n",
                   back[0], back[1], back[2], back[3], back[4]);
    }
    if (n->barriers && rng_below(&n->seed, 6) == 0)
        buf_puts(out, "barrier\n");
    buf_printf(out, "e%d: endloop imm=b%d\n", l, l);
}

static inline void nests_block(Nests *n, int depth, Buf *out) {
    for (uint32_t i = 0, count = 1 + rng_below(&n->shape, 4); i < count; i++) {
        if (depth < 2 && rng_below(&n->shape, 2) == 0)
            nests_loop(n, depth, out);
        else
            nests_line(n, out);
    }
}

#endif
