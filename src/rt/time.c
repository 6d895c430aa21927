// SPDX-License-Identifier: Apache-2.0
// time.c — modelled time of an executable: the numbers (otrn_time), or all that is behind them (otrn_profile).
//
// Both price the program in an arena of their own. A profile keeps that arena, with the clock's events, and its executable.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock/flow.h"
#include "clock/view.h"
#include "rt/exe.h"
#include "rt/price.h"

struct otrn_profile {
    otrn_exe *exe; // held
    Ctx ctx;
    Arena arena;
    RtPricing how;
    RtPriced priced;
    View view;
    otrn_report report;
};

_Static_assert(OTRN_ENGINES == CLOCK_TRACKS, "the report names the clock's tracks");

const char *otrn_engine_name(int engine) {
    return engine >= 0 && engine < CLOCK_TRACKS ? clock_track_names[engine] : "unknown";
}

static void fill_traffic(const Traffic *t, const View *view, const char *note, otrn_report *out) {
    out->comm_us = t->busy_ns / 1e3;
    out->exposed_comm_us = t->exposed_ns / 1e3;
    out->link_bytes = t->bytes;
    snprintf(out->comm_note, sizeof out->comm_note, "%s", note ? note : "");
    out->num_collectives = t->rows.n;
    for (uint32_t i = 0; i < t->rows.n && i < OTRN_COLLECTIVES; i++) {
        const TrafficRow *r = &t->rows.at[i];
        const ViewLine *l = &view->lines.at[r->line];
        otrn_collective *c = &out->collectives[i];
        *c = (otrn_collective){.ranks = r->ranks, .groups = r->groups, .stride = r->stride, .line = l->line, .count = r->count,
                               .bytes = r->bytes, .busy_us = r->busy_ns / 1e3, .exposed_us = r->exposed_ns / 1e3};
        snprintf(c->kind, sizeof c->kind, "%s", hlo_op_rows[r->op].name);
        snprintf(c->file, sizeof c->file, "%s", l->file);
    }
}

static void fill_report(const RtPriced *p, otrn_report *out) {
    const Clock *clock = &p->clock;
    const Cost *cost = &p->cost;
    *out = (otrn_report){.struct_size = sizeof *out};
    snprintf(out->target, sizeof out->target, "%s", p->chip.name);
    out->total_us = clock->total_ns / 1e3;
    for (int i = 0; i < CLOCK_TRACKS; i++) {
        out->busy_us[i] = clock->busy_ns[i] / 1e3;
        out->instructions[i] = clock->insts[i];
    }
    out->flops = clock->flops;
    out->hbm_bytes = clock->hbm_bytes;
    otrn_memory memory;
    exe_memory(p->art, &memory);
    out->hbm_peak_bytes = (double)memory.peak_bytes;
    out->unknown_loops = clock->unknown_loops;
    out->counted_loops = clock->counted_loops;
    out->assumed_trips = clock->unknown_loops ? p->assumed_trips : 0;
    out->usd_per_hour = cost->usd_per_hour;
    out->devices = cost->devices;
    out->cores_per_device = cost->cores_per_device;
    out->machines = cost->machines;
    snprintf(out->instance, sizeof out->instance, "%s", cost->instance.name ? cost->instance.name : "");
    snprintf(out->price_basis, sizeof out->price_basis, "%s", cost->basis);
    out->flops_peak = cost->flops_peak;
    out->utilisation = cost_utilisation(cost, clock->flops, clock->total_ns * 1e-9);
}

void rt_trips(otrn_exe *exe, Arena *a, ClockOptions *out) {
    if (!flow_unknown(exe->art))
        return;
    uint64_t *counts = ARENA_NEWN(a, uint64_t, (size_t)exe->art->ncode + 1);
    bool ran = false;
    pthread_mutex_lock(&exe->env->turn);
    for (uint32_t i = 0; i < exe->slots.n; i++) {
        const uint64_t *of = chip_counts(exe->slots.at[i].prog);
        ran |= of != NULL;
        for (uint32_t pc = 0; of && pc < exe->art->ncode; pc++)
            counts[pc] = of[pc] > counts[pc] ? of[pc] : counts[pc];
    }
    pthread_mutex_unlock(&exe->env->turn);
    if (!ran)
        return;
    uint64_t *trips;
    out->ntrips = clock_trips(a, exe->art, counts, &trips);
    out->trips = trips;
}

static bool has_pairs(const ChipFile *chip) { return chip->cores_per_logical >= 2; } // logical cores of two

// The program as the artifact's own options say, on the target. A chip whose logical cores are single has it on those.
void rt_exe_price(otrn_exe *exe, Ctx *ctx, Arena *a, const char *target, bool events, RtPricing *how, RtPriced *out) {
    otrn_env *env = exe->env;
    Options *opts = arena_dup(a, &env->opts, sizeof *opts);
    ChipFile *chip = ARENA_NEW(a, ChipFile);
    if (target)
        chipfile_load(ctx, a, target, opts->val[OPT_CHIPS], chip);
    else
        chipfile_named(ctx, a, exe->art->target, &env->chip, opts->val[OPT_CHIPS], chip);
    opts->val[OPT_TARGET] = target ? target : exe->art->target;
    if (exe->art->program)
        rt_options_of(ctx, a, exe->art, exe->art->name, true, opts);
    if (!has_pairs(chip))
        opts->val[OPT_LNC] = "1";
    *how = (RtPricing){.how = {.opts = opts, .chip = chip, .name = exe->art->name, .pool = env->pool,
                            .spare = &env->spare, .writer = env->writer},
                    .instance = env->instance.name ? &env->instance : NULL,
                    .replicas = exe->replicas,
                    .clock = {.events = events, .stalls = events}};
    rt_trips(exe, a, &how->clock);
    rt_price(ctx, a, exe->art, how, out);
}

static void price(otrn_profile *p, const char *target, bool events) {
    rt_exe_price(p->exe, &p->ctx, &p->arena, target, events, &p->how, &p->priced);
    fill_report(&p->priced, &p->report);
    const RtPriced *at = &p->priced;
    bool talks = at->clock.insts[CLOCK_TRACKS - 1] > 0;
    if (events || talks)
        view_make(&p->arena, at->art, &at->chip, &at->clock, &p->view);
    if (!talks)
        return;
    Stalls stalls = {0};
    Traffic traffic;
    if (events)
        stall_make(&p->arena, at->art, &at->chip, &at->clock, &p->view, &stalls);
    rt_traffic(&p->ctx, &p->arena, &p->how, at, &p->view, &stalls, &traffic);
    fill_traffic(&traffic, &p->view, traffic_warning(&p->arena, &traffic, &p->view, TRAFFIC_MOST), &p->report);
}

otrn_status otrn_time(otrn_exe *exe, const char *target, otrn_report *out, otrn_error *err) {
    if (!exe)
        return rt_missing(err, "otrn_time", "exe");
    otrn_profile p = {.exe = exe};
    otrn_profile *volatile keep = &p;
    arena_init(&p.arena, &p.ctx);
    jmp_buf here;
    otrn_status s;
    if (CTX_TRY(&p.ctx, here)) {
        price(keep, target, false);
        s = rt_give(out, &keep->report, sizeof keep->report, "otrn_report", err);
    } else {
        s = rt_fail(err, &keep->ctx);
    }
    arena_fini(&keep->arena);
    return s;
}

otrn_status otrn_profile_make(otrn_exe *exe, const char *target, otrn_profile **out, otrn_error *err) {
    if (!exe || !out)
        return rt_missing(err, "otrn_profile_make", exe ? "out" : "exe");
    *out = NULL;
    otrn_profile *p = calloc(1, sizeof *p);
    if (!p)
        return ctx_set(err, OTRN_NOMEM, NO_PLACE, "out of memory");
    p->exe = exe;
    atomic_fetch_add(&exe->refs, 1);
    arena_init(&p->arena, &p->ctx);
    jmp_buf here;
    if (CTX_TRY(&p->ctx, here)) {
        price(p, target, true);
        *out = p;
        return OTRN_OK;
    }
    otrn_status s = rt_fail(err, &p->ctx);
    otrn_profile_free(p);
    return s;
}

void otrn_profile_free(otrn_profile *p) {
    if (!p)
        return;
    otrn_exe *exe = p->exe;
    arena_fini(&p->arena);
    free(p);
    otrn_exe_free(exe);
}

otrn_status otrn_profile_report(const otrn_profile *p, otrn_report *out, otrn_error *err) {
    return p ? rt_give(out, &p->report, sizeof p->report, "otrn_report", err) : rt_missing(err, "otrn_profile_report", "profile");
}

size_t otrn_profile_num_lines(const otrn_profile *p) { return p ? p->view.lines.n : 0; }

otrn_status otrn_profile_line(const otrn_profile *p, size_t i, otrn_line *out, otrn_error *err) {
    if (!p)
        return rt_missing(err, "otrn_profile_line", "profile");
    if (i >= p->view.lines.n)
        return ctx_set(err, OTRN_ARGUMENT, NO_PLACE, "otrn_profile_line: there are %u lines, number %zu was asked for",
                       p->view.lines.n, i);
    const ViewLine *l = &p->view.lines.at[i];
    otrn_line line = {.struct_size = sizeof line, .file = l->file, .name = l->name, .line = l->line,
                      .op = l->op ? hlo_op_rows[l->op].name : "", .engine = l->track, .busy_us = l->most_ns / 1e3,
                      .flops = l->flops, .hbm_bytes = l->hbm_bytes, .instructions = l->insts};
    for (int e = 0; e < CLOCK_TRACKS; e++)
        line.engine_us[e] = l->busy_ns[e] / 1e3;
    return rt_give(out, &line, sizeof line, "otrn_line", err);
}

otrn_status otrn_profile_roof(const otrn_profile *p, otrn_roof *out, otrn_error *err) {
    if (!p)
        return rt_missing(err, "otrn_profile_roof", "profile");
    const ViewRoof *r = &p->view.roof;
    otrn_roof roof = {.struct_size = sizeof roof, .compute_us = r->compute_ns / 1e3, .memory_us = r->memory_ns / 1e3,
                      .attainable_flops = r->attainable, .achieved_flops = r->achieved, .ridge = r->ridge};
    return rt_give(out, &roof, sizeof roof, "otrn_roof", err);
}

otrn_status otrn_profile_trace(const otrn_profile *p, const char *path, otrn_error *err) {
    if (!p || !path)
        return rt_missing(err, "otrn_profile_trace", p ? "path" : "profile");
    Ctx ctx = {0};
    Arena arena;
    arena_init(&arena, &ctx);
    Arena *volatile keep = &arena;
    jmp_buf here;
    otrn_status s = OTRN_OK;
    if (CTX_TRY(&ctx, here)) {
        rt_timeline_write(&ctx, keep, &p->how, &p->priced, path);
    } else {
        s = rt_fail(err, &ctx);
    }
    arena_fini(keep);
    return s;
}
