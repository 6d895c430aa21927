// SPDX-License-Identifier: Apache-2.0
// hints.c — tries other options, arguments given away, masks of -inf.
//
// A hint is only ever a measured one: each row of the table below is compiled and priced, and shown with what it gave.
#include "rt/hints.h"

#include <math.h>
#include <string.h>

#include "pass/mask.h"

#define GAIN_TIME 0.005 // a hint that gives less than that share of the time,
#define GAIN_BYTES 0.01 // or of the memory, is none

typedef struct Try {
    const char *what, *how; // in words; the option, or what to write in the program
    int option;             // OPT_… to set, or -1: the program is changed before it is compiled,
    const char *value;
    void (*prepare)(void *base, Hlo *h); // … by this function; an error when there is nothing to change
    bool changes_numbers;
} Try;

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

// A mask's finite number: no other constant of a training step is so far below zero; below MASK_NOTHING it counts as -inf (pass/mask.c).
#define MASK_MOST (-1e4)

static bool is_mask_number(const Hlo *h, const HloOp *op) {
    if (op->code != HLO_CONSTANT)
        return false;
    const HloAttr *a = hlo_attr(op, AK_VALUE);
    int dtype = hlo_value_type(h, op->results)->dtype;
    if (!a || a->kind != HA_TENSOR || !dtype_is_float(dtype) || a->n != dtype_bytes(dtype)) // one number, or a splat
        return false;
    double x = dtype_to_f64(dtype, a->data);
    return x <= MASK_MOST && x > MASK_NOTHING;
}

// Columns masked with -inf are left out whatever the scores are, with a finite number only where scores have a bound.
static void mask_with_inf(void *base, Hlo *h) {
    (void)base;
    bool any = false;
    for (OpId id = 1; id < h->ops.n; id++) {
        if (!is_mask_number(h, hlo_at(h, id)))
            continue;
        HloOp *op = hlo_at(h, id);
        int dtype = hlo_value_type(h, op->results)->dtype;
        uint8_t *inf = ARENA_NEWN(h->arena, uint8_t, 8);
        dtype_from_f64(dtype, inf, -HUGE_VAL);
        hlo_attr_slot(h, id, AK_VALUE)->data = inf;
        any = true;
    }
    if (!any)
        ctx_fail(h->ctx, OTRN_UNSUPPORTED, NO_PLACE, "nothing is masked with a finite number");
}

static const Try tries[] = {
    {"products in bf16", "--auto-cast=matmult", OPT_AUTO_CAST, "matmult", NULL, true},
    {"all operations in bf16", "--auto-cast=all", OPT_AUTO_CAST, "all", NULL, true},
    {"two cores as one", "--lnc=2", OPT_LNC, "2", NULL, false},
    {"one core by itself", "--lnc=1", OPT_LNC, "1", NULL, false},
    {"arguments given away", "donate_argnums of jax.jit", -1, NULL, donate, false},
    {"masks of -inf", "jnp.where(mask, scores, -jnp.inf), or jnp.finfo(scores.dtype).min", -1, NULL, mask_with_inf, false},
};
#define TRY_COUNT (sizeof tries / sizeof *tries)

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
    for (uint32_t i = 0; y->prepare == donate && i < base->art->nargs; i++)
        if (could_donate(base->art, i))
            return true;
    return y->prepare == mask_with_inf;
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
        c.prepare = y->prepare, c.prepare_arg = base->art;
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

static bool hint_of(const RtPricing *how, const RtPriced *base, const void *bytes, size_t size, const Try *y, RtHint *out) {
    double was = base->clock.total_ns, room = view_hbm_planned(base->art);
    *out = (RtHint){.what = y->what, .how = y->how, .changes_numbers = y->changes_numbers};
    if (!applies(how, base, y) || !try_it(how, base, bytes, size, y, out))
        return false;
    out->helps = out->ns < was * (1 - GAIN_TIME) || (out->hbm_bytes < room * (1 - GAIN_BYTES) && out->ns < was * (1 + GAIN_TIME));
    return true;
}

bool rt_hint_masks(const RtPricing *how, const RtPriced *base, const void *bytes, size_t size, RtHint *out) {
    const Try *y = tries;
    while (y->prepare != mask_with_inf)
        y++;
    return hint_of(how, base, bytes, size, y, out) && out->helps;
}

uint32_t rt_hints(Arena *a, const RtPricing *how, const RtPriced *base, const void *bytes, size_t size, RtHint **out) {
    uint32_t n = 0;
    *out = ARENA_NEWN(a, RtHint, TRY_COUNT);
    for (size_t i = 0; i < TRY_COUNT; i++)
        n += hint_of(how, base, bytes, size, &tries[i], &(*out)[n]);
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
