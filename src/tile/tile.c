// SPDX-License-Identifier: Apache-2.0
// tile.c — the stop between graph and instructions: lower to steps, share them out, then emit.
//
// A program for a logical core of two is shared by both (pair.c), unless one is as quick alone: then the other stands still. The clock
// decides, but where what the steps are thought to take leaves no doubt: two emissions and two runs of the clock are felt then.
#include <string.h>

#include "base/opt.h"
#include "mach/instance.h"
#include "tile/nest_text.h"
#include "tile/pair.h"

#define TIMED_CODE_MAX 4096   // instructions of both cores: what the clock takes for them is not felt
#define TIMED_STEPS_MAX 65536 // it looks at, in loops
#define MEET_NS 1000.0        // what a meeting costs, with the waits around it
#define GAIN 0.95             // of the time of one core: else sharing is not worth it,
#define SURE_GAIN 0.75        // the estimate is never off by so much: so it is worth it,
#define TIMED_GAIN 0.99       // by the clock

static Artifact *lower(Compile *c, const ChipFile *chip, uint32_t cores, bool share, Pair *pair) {
    Lower *l = ARENA_NEW(c->scratch, Lower);
    *l = (Lower){.c = c, .h = c->hlo};
    lower_program(l, chip);
    if (c->nests) {
        c->nests->n = 0;
        nests_print(l, c->nests);
    }
    *pair = (Pair){.cores = cores};
    if (share)
        pair_plan(l, chip, pair);
    if (pair->is_split && pair->two_ns + MEET_NS * pair->rounds > GAIN * pair->one_ns) {
        // steps are in another order by now
        return lower(c, chip, cores, false, pair);
    }
    ChipFile all = *chip;
    all.hbm_bytes_per_core *= cores; // they share their memories
    return emit_program(l, &all, pair);
}

static bool is_sure(const Pair *pair) { return pair->two_ns + MEET_NS * pair->rounds < SURE_GAIN * pair->one_ns; }

static double time_of(Compile *c, Artifact *art, const ChipFile *chip) {
    Clock clock;
    artifact_expand(c->arena, art);
    clock_run(c->ctx, c->scratch, art, chip, &(ClockOptions){.steps_max = TIMED_STEPS_MAX}, &clock);
    return clock.total_ns;
}

// As two share it; NULL where that takes more memory than there is: their parts live longer than one core's.
static Artifact *shared(Compile *c, const ChipFile *chip, Pair *pair) {
    Artifact *volatile art = NULL;
    jmp_buf here, *outer = c->ctx->on_fail;
    bool ok = CTX_TRY(c->ctx, here);
    if (ok)
        art = lower(c, chip, 2, true, pair);
    c->ctx->on_fail = outer;
    if (!ok && c->ctx->err.code != OTRN_CAPACITY)
        longjmp(*outer, 1);
    return art;
}

Artifact *tile_lower(Compile *c, const ChipFile *chip) {
    uint32_t cores = c->opts ? chip_lnc(c->ctx, c->opts, chip) : 1;
    assert(cores == 1 || cores == 2);
    Pair pair;
    bool one_by_one = c->opts && strcmp(c->opts->val[OPT_NAN], "off"); // so that the first NaN is the first of all
    if (cores == 1 || one_by_one)
        return lower(c, chip, cores, false, &pair);
    Artifact *two = shared(c, chip, &pair);
    if (two && (!pair.is_split || (is_sure(&pair) && two->ncode + two->peer->ncode > TIMED_CODE_MAX)))
        return two;
    Artifact *one = lower(c, chip, 2, false, &pair);
    return two && time_of(c, two, chip) < TIMED_GAIN * time_of(c, one, chip) ? two : one;
}
