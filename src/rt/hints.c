// SPDX-License-Identifier: Apache-2.0
// hints.c — tries other options, and arguments given away.
//
// A hint is only ever a measured one: each row of the table below is compiled and priced, and shown with what it gave.
#include "rt/hints.h"

#include <math.h>
#include <string.h>

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
static bool applies(const RtPricing *how, const RtPriced *base, const Try *y) {
    if (y->option == OPT_AUTO_CAST)
        return !strcmp(how->how.opts->val[OPT_AUTO_CAST], "none") && (!strcmp(y->value, "all") || has_f32_products(base->art));
    if (y->option == OPT_LNC)
        return base->chip.cores_per_logical >= 2 && (*y->value == '2') != (base->art->peer != NULL);
    for (uint32_t i = 0; i < base->art->nargs; i++)
        if (could_donate(base->art, i))
            return true;
    return false;
}

// Compiles and prices with an arena of its own; false when it does not compile so.
static bool try_it(const RtPricing *how, const RtPriced *base, const void *bytes, size_t size, const Try *y, RtHint *out) {
    Ctx ctx = {0};
    Arena arena;
    jmp_buf jb;
    volatile bool ok = false;
    arena_init(&arena, &ctx);
    if (CTX_TRY(&ctx, jb)) {
        Options opts = *how->how.opts;
        if (y->option >= 0)
            opts.val[y->option] = y->value, opts.from[y->option] = "command line";
        RtCompile c = {.opts = &opts, .chip = how->how.chip, .name = how->how.name, .bytes = bytes, .size = size, .pool = how->how.pool};
        if (y->option < 0)
            c.prepare = donate, c.prepare_arg = base->art;
        Buf made = {0};
        rt_compile(&ctx, &arena, &c, &made);
        RtPricing again = *how;
        again.how = (RtCompile){.opts = &opts, .chip = how->how.chip, .name = how->how.name, .pool = how->how.pool};
        again.clock.events = again.clock.stalls = false;
        RtPriced *p = ARENA_NEW(&arena, RtPriced);
        rt_price(&ctx, &arena, artifact_load(&ctx, &arena, how->how.name, made.at, made.n), &again, p);
        out->ns = p->clock.total_ns;
        out->hbm_bytes = view_hbm_planned(p->art);
        ok = true;
    }
    arena_fini(&arena);
    return ok;
}

uint32_t rt_hints(Arena *a, const RtPricing *how, const RtPriced *base, const void *bytes, size_t size, RtHint **out) {
    uint32_t n = 0;
    double was = base->clock.total_ns, room = view_hbm_planned(base->art);
    *out = ARENA_NEWN(a, RtHint, TRY_COUNT);
    for (size_t i = 0; i < TRY_COUNT; i++) {
        RtHint h = {.what = tries[i].what, .how = tries[i].how, .changes_numbers = tries[i].changes_numbers};
        if (!applies(how, base, &tries[i]) || !try_it(how, base, bytes, size, &tries[i], &h))
            continue;
        h.helps = h.ns < was * (1 - GAIN_TIME) || (h.hbm_bytes < room * (1 - GAIN_BYTES) && h.ns < was * (1 + GAIN_TIME));
        (*out)[n++] = h;
    }
    return n;
}

const char *rt_hint_text(Arena *a, const RtPriced *base, const RtHint *h) {
    double was = base->clock.total_ns, bytes = view_hbm_planned(base->art);
    const char *unit = was >= 1e6 ? "ms" : "us";
    double scale = was >= 1e6 ? 1e-6 : 1e-3;
    const char *memory = fabs(h->hbm_bytes - bytes) < GAIN_BYTES * bytes
                             ? ""
                             : arena_printf(a, ", HBM %s to %s", view_scaled(a, bytes, 3, "B"), view_scaled(a, h->hbm_bytes, 3, "B"));
    return arena_printf(a, "%.4g to %.4g %s (%+.1f %%)%s%s", was * scale, h->ns * scale, unit, was > 0 ? 100 * (h->ns - was) / was : 0,
                        memory, h->changes_numbers ? "; results differ" : "");
}

HtmlRow *rt_hint_rows(Arena *a, const RtPriced *base, const RtHint *hints, uint32_t n) {
    HtmlRow *rows = ARENA_NEWN(a, HtmlRow, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++)
        rows[i] = (HtmlRow){arena_printf(a, "%s (%s)", hints[i].what, hints[i].how), rt_hint_text(a, base, &hints[i]),
                            hints[i].helps ? "" : "does not help"};
    return rows;
}
