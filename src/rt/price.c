// SPDX-License-Identifier: Apache-2.0
// price.c — a program as it would run: compiled for the chip asked about, timed, and its share of a machine's price.
//
// Every front end comes here, so that they all tell the same.
#include <stdlib.h>
#include <string.h>

#include "rt/price.h"

static uint32_t cores_per_device(const Artifact *art, const Options *o) {
    return art->peer || !strcmp(o->val[OPT_LNC], "2") ? 2 : 1;
}

uint64_t rt_trips_asked(Ctx *ctx, const Options *o) {
    const char *text = o->val[OPT_TRIPS];
    if (!*text || !strcmp(text, "run"))
        return 0;
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    if (*end || *text < '1' || *text > '9' || n > 1000000000000ull) {
        ctx_hint(ctx, "--trips=100 takes each of them for a hundred iterations");
        ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "trips: `%s` is no number of iterations", text);
    }
    return n;
}

static ClockOptions clock_options(Ctx *ctx, const RtPricing *in, const Artifact *art) {
    const Options *o = in->how.opts;
    ClockOptions how = in->clock;
    how.cores = !art->peer && *o->val[OPT_LNC] == '2' ? 2 : 1; // a kernel runs on each; a program says itself
    how.trips_else = rt_trips_asked(ctx, o);
    return how;
}

void rt_price(Ctx *ctx, Arena *a, Artifact *art, const RtPricing *in, RtPriced *out) {
    const Options *o = in->how.opts;
    out->chip = *in->how.chip;
    out->art = rt_again(ctx, a, art, &in->how);
    const Instance *asked = in->instance && !strcmp(in->instance->chip, out->chip.name) ? in->instance : NULL;
    if (asked)
        instance_network(asked, &out->chip);
    ClockOptions how = clock_options(ctx, in, out->art);
    out->assumed_trips = how.trips_else;
    out->clock = (Clock){0};
    clock_run(ctx, a, out->art, &out->chip, &how, &out->clock);
    uint32_t devices = (out->art->partitions ? out->art->partitions : 1) * (in->replicas ? in->replicas : 1);
    cost_make(ctx, a, o, &out->chip, asked, devices, cores_per_device(out->art, o), &out->cost);
}

// In memory of its own, which is a good part of a large program's.
static double free_ns(Ctx *ctx, const RtPricing *in, const RtPriced *p) {
    ClockOptions how = clock_options(ctx, in, p->art);
    how.events = how.stalls = false;
    ChipFile chip = traffic_free(&p->chip);
    Clock clock = {0};
    Arena arena;
    arena_init(&arena, ctx);
    jmp_buf here, *outer = ctx->on_fail;
    volatile bool ok = false;
    if (CTX_TRY(ctx, here)) {
        clock_run(ctx, &arena, p->art, &chip, &how, &clock);
        ok = true;
    }
    ctx->on_fail = outer;
    arena_fini(&arena);
    if (!ok)
        longjmp(*outer, 1);
    return clock.total_ns;
}

void rt_traffic(Ctx *ctx, Arena *a, const RtPricing *in, const RtPriced *p, const View *view, const Stalls *stalls, Traffic *out) {
    bool any = p->clock.insts[CLOCK_TRACKS - 1] > 0;
    traffic_make(a, p->art, &p->clock, any ? free_ns(ctx, in, p) : p->clock.total_ns, view, stalls, out);
}
