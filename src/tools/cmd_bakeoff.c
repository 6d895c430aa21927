// SPDX-License-Identifier: Apache-2.0
// cmd_bakeoff.c — otrn bakeoff: the same program on two machines or more, each with a verdict of its own.
//
// How the rate changes with another precision is told by pricing the program again with its f32 products, or all its f32 work, in bf16 (--auto-cast). With
// another batch it is not: a program's sizes are its own, and nothing in it says which of them is the batch.
#include <string.h>

#include "tools/prof.h"

enum { MATMULT, ALL, VARIANTS };
static const char *const casts[VARIANTS] = {"matmult", "all"};

typedef struct Row {
    const char *instance;
    Prof p;
    Told o;
    const char *refused; // why it cannot run there; NULL: it can
    double even_usd;     // of all its devices an hour, at which a step costs what it does on the first
    double more[VARIANTS]; // of the rate, as a share; VARIED_NOT: not told
} Row;

#define VARIED_NOT -1.0
#define BATCH_NOT "a program's sizes are its own: export it with another batch"

static const char **names_of(Tool *t, uint32_t *n) {
    const char *list = t->opt.val[OPT_INSTANCE];
    const char **names = ARENA_NEWN(t->arena, const char *, t->words.n + strlen(list) + 1);
    *n = 0;
    for (uint32_t i = 1; i < t->words.n; i++)
        names[(*n)++] = t->words.at[i];
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        names[(*n)++] = arena_strndup(t->arena, at, strcspn(at, ","));
    if (*n < 2) {
        ctx_hint(t->ctx, "otrn bakeoff %s trn1.32xlarge trn2.48xlarge", t->words.at[0]);
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "bakeoff: two instances or more are compared");
    }
    return names;
}

// --price=NAME:USD,…: each instance has a price of its own.
static const char *price_of(Tool *t, const char *list, const char *instance) {
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t name = strcspn(at, ":,");
        if (name == strlen(instance) && !memcmp(at, instance, name) && at[name] == ':')
            return arena_strndup(t->arena, at + name + 1, strcspn(at + name + 1, ","));
    }
    return "";
}

static void prices_check(Tool *t, const char *list, const char *const *names, uint32_t n) {
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        bool asked = false;
        for (uint32_t i = 0; i < n; i++)
            asked |= strcspn(at, ":,") == strlen(names[i]) && !memcmp(at, names[i], strlen(names[i])) && at[strlen(names[i])] == ':';
        if (!asked) {
            ctx_hint(t->ctx, "--price=%s:21.5,%s:55", names[0], names[1]);
            ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "price: whose is `%s`?", list);
        }
    }
}

// --- rows ---------------------------------------------------------------------------------------------

// False where the program is too large for the machine: that is the machine's verdict, not an error.
static bool try_make(Tool *t, const char *instance, Prof *p, Told *o) {
    jmp_buf here, *outer = t->ctx->on_fail;
    bool ok = CTX_TRY(t->ctx, here);
    t->opt.val[OPT_INSTANCE] = instance;
    if (ok)
        predict_make(t, t->words.at[0], p, o);
    t->ctx->on_fail = outer;
    if (!ok && t->ctx->err.code != OTRN_CAPACITY)
        longjmp(*outer, 1);
    return ok;
}

static double varied(Tool *t, const Row *r, const char *cast) {
    const char *before = t->opt.val[OPT_AUTO_CAST];
    Prof p;
    Told o;
    t->opt.val[OPT_AUTO_CAST] = cast;
    bool ok = try_make(t, r->instance, &p, &o);
    t->opt.val[OPT_AUTO_CAST] = before;
    return ok ? r->o.step_s / o.step_s - 1 : VARIED_NOT;
}

static void row_make(Tool *t, const char *instance, bool wide, Row *r) {
    r->instance = instance;
    if (!try_make(t, instance, &r->p, &r->o)) {
        const char *why = t->ctx->err.text;
        r->refused = arena_strndup(t->arena, why, strcspn(why, "\n;"));
        return;
    }
    for (int i = 0; i < VARIANTS; i++)
        r->more[i] = wide && !r->o.measured ? varied(t, r, casts[i]) : VARIED_NOT;
}

// --- what is told -------------------------------------------------------------------------------------

static void row_text(const Row *r) {
    const Told *o = &r->o;
    if (r->refused) {
        printf("%-22s does not fit: %s\n", r->instance, r->refused);
        return;
    }
    printf("%-22s %8u %9u %11.5g", r->instance, r->p.cost.machines, r->p.cost.devices, o->step_s);
    if (o->tokens > 0)
        printf(" %12.6g", o->tokens / o->step_s);
    else
        printf(" %12s", "");
    if (o->usd_per_hour > 0)
        printf(" %10.5g %12.4g", o->usd_per_hour, o->tokens > 0 ? usd_per_million(o) : o->usd_per_hour / 3600 * o->step_s);
    else
        printf(" %10s %12s", "-", "-");
    if (r->even_usd > 0)
        printf(" %12.5g", r->even_usd);
    else
        printf(" %12s", "-");
    printf(" %6s", o->peak_bytes <= o->hbm_bytes ? "yes" : "no");
    if (o->measured)
        printf("  measured\n");
    else if (o->error >= 0)
        printf("  %.0f %%\n", 100 * o->error);
    else
        printf("  not known\n");
}

static void prices_text(const Row *rows, uint32_t n) {
    const char *before = "prices: ";
    for (uint32_t i = 0; i < n; i++)
        if (!rows[i].refused && rows[i].o.usd_per_hour > 0)
            printf("%s%s %s", before, rows[i].instance, rows[i].p.cost.basis), before = "; ";
    printf(*before == ';' ? "\n" : "");
}

static void more_text(const Row *rows, uint32_t n, const char *type) {
    for (uint32_t i = 0; i < n && !strcmp(type, "fp32"); i++) {
        for (int k = 0; k < VARIANTS && !rows[i].refused; k++)
            if (rows[i].more[k] > VARIED_NOT)
                printf("%s%s %+.1f %%", k ? ", " : rows[i].instance, k ? "--auto-cast=all" : ": --auto-cast=matmult", 100 * rows[i].more[k]);
        printf(rows[i].refused || rows[i].o.measured ? "" : " steps a second\n");
    }
    if (strcmp(type, "fp32"))
        printf("precision: its products are %s already\n", type);
    printf("batch: %s\n", BATCH_NOT);
}

static void row_json(const Row *r, const char *type, bool last) {
    const Told *o = &r->o;
    bool known = !r->refused;
    printf("{\n  \"instance\": \"%s\",\n  \"machines\": %u,\n  \"devices\": %u,\n", r->instance, r->p.cost.machines, r->p.cost.devices);
    predict_key("step_s", o->step_s, known);
    predict_key("tokens_per_s", o->tokens / o->step_s, known && o->tokens > 0);
    predict_key("samples_per_s", o->samples / o->step_s, known && o->samples > 0);
    predict_key("usd_per_hour", o->usd_per_hour, known && o->usd_per_hour > 0);
    predict_key("usd_per_1m_tokens", usd_per_million(o), known && o->usd_per_hour > 0 && o->tokens > 0);
    if (known && o->usd_per_hour > 0)
        printf("  \"price_basis\": \""), json_text(r->p.cost.basis), printf("\",\n");
    predict_key("break_even_usd_per_hour", r->even_usd, r->even_usd > 0);
    predict_key("mfu", o->mfu, known);
    predict_key("comm_share", o->comm, known);
    predict_key("expected_error", o->error, known && o->error >= 0);
    printf("  \"expected_error_rows\": [%s],\n  \"measured\": %s,\n", known ? o->error_rows : "", o->measured ? "true" : "false");
    printf("  \"products\": \"%s\",\n  \"sensitivity\": {", type);
    for (int i = 0; i < VARIANTS; i++)
        if (known && r->more[i] > VARIED_NOT)
            printf("\"--auto-cast=%s\": %.9g, ", casts[i], r->more[i]);
    printf("\"batch\": \"%s\"},\n", BATCH_NOT);
    if (r->refused) {
        printf("  \"why\": \"");
        json_text(r->refused);
        printf("\",\n");
    }
    printf("  \"fits\": %s\n}%s", known && o->peak_bytes <= o->hbm_bytes ? "true" : "false", last ? "" : ",\n");
}

int cmd_bakeoff(Tool *t) {
    uint32_t n, base = 0;
    const char **names = names_of(t, &n);
    const char *prices = t->opt.val[OPT_PRICE];
    measured_check(t, names, n);
    prices_check(t, prices, names, n);
    const char *type = roof_type(t, t->words.at[0]);
    Row *rows = ARENA_NEWN(t->arena, Row, n);
    for (uint32_t i = 0; i < n; i++) {
        t->opt.val[OPT_PRICE] = price_of(t, prices, names[i]);
        row_make(t, names[i], !strcmp(type, "fp32"), &rows[i]);
    }
    while (base + 1 < n && rows[base].refused) // the first that can run it
        base++;
    for (uint32_t i = 0; i < n; i++)
        rows[i].even_usd = rows[i].refused ? 0 : rows[base].o.usd_per_hour * rows[base].o.step_s / rows[i].o.step_s;
    bool json = opt_on(&t->opt, OPT_JSON), tokens = prof_tokens(t) > 0;
    if (json)
        printf("[");
    else
        printf("%-22s %8s %9s %11s %12s %10s %12s %12s %6s  %s\n", "", "machines", "devices", "step s", tokens ? "tokens/s" : "", "USD/h",
               tokens ? "USD/1M tok" : "USD/step", "break-even", "fits", "error");
    for (uint32_t i = 0; i < n; i++)
        if (json)
            row_json(&rows[i], type, i + 1 == n);
        else
            row_text(&rows[i]);
    int status = 0;
    for (uint32_t i = 0; i < n; i++)
        status = !rows[i].refused && prof_comm_asked(t, &rows[i].p) ? STATUS_COMM : status;
    if (json) {
        printf("]\n");
        return status;
    }
    printf("break-even: USD/h of its devices at which a step costs what it does on %s\n", names[base]);
    prices_text(rows, n);
    more_text(rows, n, type);
    return status;
}
