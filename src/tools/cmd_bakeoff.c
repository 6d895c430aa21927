// SPDX-License-Identifier: Apache-2.0
// cmd_bakeoff.c — otrn bakeoff: the same program on two machines or more, each with a verdict of its own.
//
// How the rate changes with another precision is told by pricing the program again with its f32 products, or all its f32 work, in bf16 (--auto-cast). With
// another batch it is not: a program's sizes are its own, and nothing in it says which of them is the batch.
#include <math.h>
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

enum { COLS = 10 };

// Of a row that cannot run there the reason is all that follows its name.
static void row_cells(Tool *t, const Row *r, const char **cell) {
    Arena *a = t->arena;
    const Told *o = &r->o;
    bool priced = o->usd_per_hour > 0;
    *cell++ = r->instance;
    if (r->refused) {
        *cell++ = arena_printf(a, "does not fit: %s", r->refused);
        *cell = NULL;
        return;
    }
    *cell++ = arena_printf(a, "%u", r->p.cost.machines);
    *cell++ = arena_printf(a, "%u", r->p.cost.devices);
    *cell++ = view_seconds(a, o->step_s);
    *cell++ = o->tokens > 0 ? view_number(a, o->tokens / o->step_s, 4) : "";
    *cell++ = priced ? view_number(a, o->usd_per_hour, 5) : "-";
    *cell++ = priced ? view_number(a, o->tokens > 0 ? usd_per_million(o) : o->usd_per_hour / 3600 * o->step_s, 4) : "-";
    *cell++ = r->even_usd > 0 ? view_number(a, r->even_usd, 5) : "-";
    *cell++ = o->peak_bytes <= o->hbm_bytes ? "yes" : "no";
    *cell = o->measured ? "measured" : o->error >= 0 ? arena_printf(a, "%.0f %%", 100 * o->error) : "not known";
}

static void cells_print(const char *const *c) {
    if (c[2])
        printf("%-22s %8s %9s %11s %12s %10s %12s %12s %6s  %s\n", c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9]);
    else
        printf("%-22s %s\n", c[0], c[1]);
}

static void prices_add(Tool *t, Answer *out, const Row *rows, uint32_t n) {
    const char *text = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (!rows[i].refused && rows[i].o.usd_per_hour > 0)
            text = arena_printf(t->arena, "%s%s%s %s", text ? text : "", text ? "; " : "", rows[i].instance, rows[i].p.cost.basis);
    if (text)
        answer_add(t, out, "prices", text);
}

static void precision_add(Tool *t, Answer *out, const Row *rows, uint32_t n, const char *type) {
    if (strcmp(type, "fp32")) {
        answer_add(t, out, "precision", arena_printf(t->arena, "its products are %s already", type));
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        const char *text = NULL;
        for (int k = 0; k < VARIANTS && !rows[i].refused; k++)
            if (rows[i].more[k] > VARIED_NOT)
                text = arena_printf(t->arena, "%s%s--auto-cast=%s %+.1f %%", text ? text : "", text ? ", " : "", casts[k], 100 * rows[i].more[k]);
        if (text)
            answer_add(t, out, rows[i].instance, arena_printf(t->arena, "%s steps a second", text));
    }
}

static bool runs(const Row *r) { return !r->refused && r->o.peak_bytes <= r->o.hbm_bytes; }

static double row_usd(const Row *r) { return runs(r) && r->o.usd_per_hour > 0 ? r->o.usd_per_hour / 3600 * r->o.step_s : INFINITY; }

static double row_s(const Row *r) { return runs(r) ? r->o.step_s : INFINITY; }

static bool row_unsure(const Row *r) { return !r->o.measured && r->o.error < 0; }

static const Row *least(const Row *rows, uint32_t n, double (*of)(const Row *), const Row *but) {
    const Row *best = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (&rows[i] != but && isfinite(of(&rows[i])) && (!best || of(&rows[i]) < of(best)))
            best = &rows[i];
    return best;
}

// Which is cheapest and which is quickest, of those that hold it.
static const char *verdict(Tool *t, const Row *rows, uint32_t n) {
    Arena *a = t->arena;
    const Row *quick = least(rows, n, row_s, NULL), *cheap = least(rows, n, row_usd, NULL), *next = least(rows, n, row_usd, cheap);
    if (!quick)
        return "none of them holds it";
    const char *fast = arena_printf(a, "%s is quickest: %s a step", quick->instance, view_seconds(a, quick->o.step_s));
    if (!cheap)
        return arena_printf(a, "%s; what any of them costs is not known", fast);
    const char *usd = cheap->o.tokens > 0 ? arena_printf(a, "%s USD per 1M tokens", view_number(a, usd_per_million(&cheap->o), 4))
                                          : arena_printf(a, "%s USD a step", view_number(a, row_usd(cheap), 4));
    const char *less = "";
    if (next) {
        double share = 1 - row_usd(cheap) / row_usd(next);
        bool close = share < fmax(cheap->o.error, 0) + fmax(next->o.error, 0), first = row_unsure(cheap), second = row_unsure(next);
        const char *how = close ? ", which is within the expected errors" : "";
        if (!close && (first || second))
            how = arena_printf(a, "; the expected error of %s%s%s is not known", first ? cheap->instance : "", first && second ? " and " : "",
                               second ? next->instance : "");
        less = arena_printf(a, ", %.1f %% less than %s%s", 100 * share, next->instance, how);
    }
    if (cheap == quick)
        return arena_printf(a, "%s is cheapest and quickest: %s%s; %s a step", cheap->instance, usd, less, view_seconds(a, quick->o.step_s));
    return arena_printf(a, "%s is cheapest: %s%s; %s", cheap->instance, usd, less, fast);
}

static void bars_add(Tool *t, Answer *out, const Row *rows, uint32_t n, bool tokens, bool usd) {
    Arena *a = t->arena;
    HtmlBar *bars = ARENA_NEWN(a, HtmlBar, n);
    uint32_t k = 0;
    for (uint32_t i = 0; i < n; i++) {
        const Told *o = &rows[i].o;
        if (rows[i].refused || (usd && !(o->usd_per_hour > 0)))
            continue;
        double v = usd ? (tokens ? usd_per_million(o) : o->usd_per_hour / 3600 * o->step_s) : tokens ? o->tokens / o->step_s : o->step_s;
        const char *text = usd ? arena_printf(a, "%s USD", view_number(a, v, 4)) : tokens ? view_number(a, v, 4) : view_seconds(a, v);
        bars[k++] = (HtmlBar){rows[i].instance, runs(&rows[i]) ? text : arena_printf(a, "%s, does not fit", text), v};
    }
    const char *title = usd ? (tokens ? "Dollars per 1M tokens" : "Dollars a step") : tokens ? "Tokens a second" : "Time of a step";
    if (k)
        VEC_PUSH(a, &out->bars, ((HtmlBars){title, bars, k}));
}

// The table, then what its numbers stand on.
static Answer answer_make(Tool *t, const Row *rows, uint32_t n, const char *base, const char *type) {
    Arena *a = t->arena;
    bool tokens = prof_tokens(t) > 0;
    const char *const titles[COLS] = {"", "machines", "devices", "step", tokens ? "tokens/s" : "", "USD/h", tokens ? "USD/1M tok" : "USD/step",
                                      "break-even", "fits", "error"};
    const char **head = ARENA_NEWN(a, const char *, COLS), **cells = ARENA_NEWN(a, const char *, (size_t)n * COLS);
    HtmlTable *table = ARENA_NEW(a, HtmlTable);
    memcpy(head, titles, sizeof titles);
    for (uint32_t i = 0; i < n; i++)
        row_cells(t, &rows[i], cells + (size_t)i * COLS);
    *table = (HtmlTable){.head = head, .cells = cells, .cols = COLS, .rows = n};
    Answer out = {.title = arena_printf(a, "%s on %u instances", t->words.at[0], n), .about = "a step of all devices on each, by opentrn", .table = table, .verdict = verdict(t, rows, n)};
    bars_add(t, &out, rows, n, tokens, true);
    bars_add(t, &out, rows, n, tokens, false);
    answer_add(t, &out, "break-even", arena_printf(a, "USD/h of its devices at which a step costs what it does on %s", base));
    prices_add(t, &out, rows, n);
    precision_add(t, &out, rows, n, type);
    answer_add(t, &out, "batch", BATCH_NOT);
    return out;
}

static void text_print(const Answer *o) {
    printf("%s\n", o->verdict);
    cells_print(o->table->head);
    for (uint32_t i = 0; i < o->table->rows; i++)
        cells_print(o->table->cells + (size_t)i * COLS);
    for (uint32_t i = 0; i < o->rows.n; i++)
        printf("%s: %s\n", o->rows.at[i].label, o->rows.at[i].value);
}

static void row_json(Tool *t, const Row *r, const char *type, bool last) {
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
    if (known)
        prof_comm_limit_json(t, &r->p);
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

static void rows_json(Tool *t, const Row *rows, uint32_t n, const char *type) {
    for (uint32_t i = 0; i < n; i++)
        printf(i ? "" : "["), row_json(t, &rows[i], type, i + 1 == n);
    printf("]\n");
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
    Answer answer = answer_make(t, rows, n, names[base], type);
    if (*t->opt.val[OPT_REPORT]) {
        Caught caught = json_begin(t);
        rows_json(t, rows, n, type);
        answer_report(t, &answer, NULL, NULL, json_end(t, caught));
    }
    if (opt_on(&t->opt, OPT_JSON))
        rows_json(t, rows, n, type);
    else
        text_print(&answer);
    int status = 0;
    for (uint32_t i = 0; i < n; i++)
        status = !rows[i].refused && prof_comm_asked(t, &rows[i].p) ? STATUS_COMM : status;
    return status;
}
