// SPDX-License-Identifier: Apache-2.0
// prof_hints.c — otrn prof --hints: what would make a program quicker or smaller, tried by compiling it again.
//
// A hint is only ever a measured one: each row of the table below is compiled and priced, and shown with what it gave.
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "rt/rt.h"
#include "tools/prof.h"

#define GAIN_TIME 0.005 // a hint that gives less than that share of the time,
#define GAIN_BYTES 0.01 // or of the memory, is none

typedef struct Try {
    const char *what, *how; // in words; the option, or what to write in the program
    int option;             // OPT_… to set, or -1: arguments are given away
    const char *value;
    bool changes_numbers;
} Try;

static const Try tries[] = {
    {"products in bf16", "--auto-cast=matmult", OPT_AUTO_CAST, "matmult", true},
    {"all operations in bf16", "--auto-cast=all", OPT_AUTO_CAST, "all", true},
    {"two cores as one", "--lnc=2", OPT_LNC, "2", false},
    {"one core by itself", "--lnc=1", OPT_LNC, "1", false},
    {"arguments given away", "donate_argnums of jax.jit", -1, NULL, false},
};
#define TRY_COUNT (sizeof tries / sizeof *tries)

static bool same_type(const ArtValue *a, const ArtValue *b) {
    return a->dtype == b->dtype && a->rank == b->rank && a->memory == b->memory &&
           !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims);
}

// An argument of the type of a result that has memory of its own.
static bool could_donate(const Artifact *art, uint32_t arg) {
    for (uint32_t r = 0; !art->args[arg].donated && r < art->nresults; r++)
        if (art->results[r].alias < 0 && same_type(&art->args[arg], &art->results[r]))
            return true;
    return false;
}

// Marks such arguments before the program is compiled.
static void donate(void *arg, Hlo *h) {
    const Artifact *art = arg;
    HloFunc *f = hlo_func_find(h, "main");
    if (!f || f->nargs != art->nargs)
        return;
    const HloNamed **attrs = ARENA_NEWN(h->arena, const HloNamed *, (size_t)f->nargs + 1);
    uint32_t *counts = ARENA_NEWN(h->arena, uint32_t, (size_t)f->nargs + 1);
    for (uint32_t i = 0; i < f->nargs; i++) {
        uint32_t n = f->arg_attrs ? f->narg_attrs[i] : 0;
        attrs[i] = f->arg_attrs ? f->arg_attrs[i] : NULL;
        counts[i] = n;
        if (!could_donate(art, i))
            continue;
        HloNamed *list = ARENA_NEWN(h->arena, HloNamed, (size_t)n + 1);
        if (n)
            memcpy(list, attrs[i], n * sizeof *list);
        list[n] = (HloNamed){.name = "jax.buffer_donor", .value = {.kind = HA_BOOL, .i = 1}};
        attrs[i] = list;
        counts[i] = n + 1;
    }
    f->arg_attrs = attrs;
    f->narg_attrs = counts;
}

static bool has_f32_products(const Artifact *art) {
    for (uint32_t pc = 0; pc < art->ncode; pc++)
        if (isa_rows[art->code[pc].op].cost == COST_MATMUL && art->code[pc].stype == DT_F32)
            return true;
    return false;
}

// Whether it makes sense to try at all.
static bool applies(const Tool *t, const Prof *p, const Try *y) {
    if (y->option == OPT_AUTO_CAST)
        return !strcmp(t->opt.val[OPT_AUTO_CAST], "none") && (!strcmp(y->value, "all") || has_f32_products(p->art));
    if (y->option == OPT_LNC)
        return p->chip.cores_per_logical >= 2 && (*y->value == '2') != (p->art->peer != NULL);
    for (uint32_t i = 0; i < p->art->nargs; i++)
        if (could_donate(p->art, i))
            return true;
    return false;
}

typedef struct Tried {
    const Prof *base;
    const void *bytes;
    size_t size;
} Tried;

// Compiles and prices with an arena of its own; false when it does not compile so.
static bool try_it(Tool *t, const Tried *in, const Try *y, ProfHint *out) {
    Ctx ctx = {0};
    Arena arena;
    jmp_buf jb;
    volatile bool ok = false;
    arena_init(&arena, &ctx);
    if (CTX_TRY(&ctx, jb)) {
        Tool inner = *t;
        inner.ctx = &ctx;
        inner.arena = &arena;
        if (in->base->art->program)
            rt_options_of(&ctx, &arena, in->base->art, in->base->path, false, &inner.opt);
        inner.opt.val[OPT_TARGET] = in->base->chip.path && strcmp(in->base->chip.path, "(built in)") ? in->base->chip.path : in->base->chip.name;
        inner.opt.from[OPT_TARGET] = "command line";
        if (y->option >= 0)
            inner.opt.val[y->option] = y->value, inner.opt.from[y->option] = "command line";
        Instance instance;
        instance_apply(&ctx, &arena, &inner.opt, &instance);
        RtCompile c = {.opts = &inner.opt, .name = in->base->path, .bytes = in->bytes, .size = in->size};
        if (y->option < 0)
            c.prepare = donate, c.prepare_arg = in->base->art;
        Buf made = {0};
        rt_compile(&ctx, &arena, &c, &made);
        Prof *p = ARENA_NEW(&arena, Prof);
        prof_price(&inner, in->base->path, &inner.opt, &made, p);
        out->ns = p->clock.total_ns;
        out->hbm_bytes = view_hbm_planned(p->art);
        ok = true;
    }
    arena_fini(&arena);
    return ok;
}

void prof_hints_make(Tool *t, Prof *p) {
    Tried in = {.base = p};
    in.bytes = file_read(t->ctx, t->arena, p->path, &in.size);
    if (artifact_is(in.bytes, in.size)) // which keeps its program
        in.bytes = p->art->program, in.size = p->art->program_bytes;
    p->hints_known = in.bytes != NULL && in.size;
    if (!p->hints_known)
        return;
    progress_begin(t, "trying hints");
    for (size_t i = 0; i < TRY_COUNT; i++) {
        ProfHint h = {.what = tries[i].what, .how = tries[i].how, .changes_numbers = tries[i].changes_numbers};
        if (!applies(t, p, &tries[i]) || !try_it(t, &in, &tries[i], &h))
            continue;
        double bytes = view_hbm_planned(p->art);
        h.helps = h.ns < p->clock.total_ns * (1 - GAIN_TIME) || (h.hbm_bytes < bytes * (1 - GAIN_BYTES) && h.ns < p->clock.total_ns * (1 + GAIN_TIME));
        VEC_PUSH(t->arena, &p->hints, h);
    }
    progress_end(t);
}

const char *prof_hint_text(Arena *a, const Prof *p, const ProfHint *h) {
    double was = p->clock.total_ns, bytes = view_hbm_planned(p->art);
    const char *unit = was >= 1e6 ? "ms" : "us";
    double scale = was >= 1e6 ? 1e-6 : 1e-3;
    const char *memory = fabs(h->hbm_bytes - bytes) < GAIN_BYTES * bytes
                             ? ""
                             : arena_printf(a, ", HBM %s to %s", prof_scaled(a, bytes, "B"), prof_scaled(a, h->hbm_bytes, "B"));
    return arena_printf(a, "%.4g to %.4g %s (%+.1f %%)%s%s", was * scale, h->ns * scale, unit, was > 0 ? 100 * (h->ns - was) / was : 0,
                        memory, h->changes_numbers ? "; results differ" : "");
}

void prof_hints_print(Tool *t, const Prof *p) {
    if (!p->hints_known) {
        printf("hints: this artifact does not keep its program\n");
        return;
    }
    uint32_t n = 0;
    printf("hints, each compiled and priced\n");
    for (uint32_t i = 0; i < p->hints.n; i++)
        if (p->hints.at[i].helps) {
            const ProfHint *h = &p->hints.at[i];
            printf("  %s (%s): %s\n", h->what, h->how, prof_hint_text(t->arena, p, h));
            n++;
        }
    for (uint32_t i = 0; i < p->hints.n; i++)
        if (!p->hints.at[i].helps)
            printf("  %s (%s) does not help: %s\n", p->hints.at[i].what, p->hints.at[i].how,
                   prof_hint_text(t->arena, p, &p->hints.at[i]));
    if (!p->hints.n)
        printf("  nothing to try: products are not fp32, nothing is left to give away\n");
}

void prof_hints_json(const Prof *p) {
    printf("  \"hints\": [");
    for (uint32_t i = 0; i < p->hints.n; i++) {
        const ProfHint *h = &p->hints.at[i];
        printf("%s\n    {\"what\": \"%s\", \"how\": \"%s\", \"us\": %.3f, \"hbm_peak_bytes\": %.0f, \"helps\": %s, \"changes_numbers\": %s}",
               i ? "," : "", h->what, h->how, h->ns * 1e-3, h->hbm_bytes, h->helps ? "true" : "false",
               h->changes_numbers ? "true" : "false");
    }
    printf("\n  ],\n");
}
