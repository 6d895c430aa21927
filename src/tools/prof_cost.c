// SPDX-License-Identifier: Apache-2.0
// prof_cost.c — otrn prof in dollars and tokens: one machine, or several side by side.
//
// A run costs its devices' share of a machine's price (clock/instance.h), and every line with dollars names whose price it
// is. Utilisation is the FLOP of all devices' matrix products over what their tensor engines could do in that time in bf16.
#include <stdlib.h>
#include <string.h>

#include "rt/price.h"
#include "tools/prof.h"

static double seconds_of(const Prof *p) { return p->clock.total_ns * 1e-9; }

double prof_usd(const Prof *p) { return p->cost.usd_per_hour / 3600 * seconds_of(p); }

double prof_tokens(Tool *t) {
    const char *text = t->opt.val[OPT_TOKENS];
    char *end;
    double n = strtod(text, &end);
    if (*end || !(n >= 0 && n < 1e15)) {
        ctx_hint(t->ctx, "--tokens=8192: of one run, of all devices together");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "tokens: `%s` is no number of tokens", text);
    }
    return n;
}

void prof_cost_print(Tool *t, const Prof *p) {
    const Cost *c = &p->cost;
    double seconds = seconds_of(p), tokens = prof_tokens(t), usd = prof_usd(p);
    if (c->devices > 1 || c->cores_per_device > 1)
        printf("devices        %u of %u core%s; what is above is of one of them\n", c->devices, c->cores_per_device,
               c->cores_per_device == 1 ? "" : "s each");
    if (c->usd_per_hour > 0)
        printf("cost           %s USD per million runs: %s\n", view_number(t->arena, usd * 1e6, 4), cost_text(t->arena, c));
    else
        printf("cost           not known: %s\n", cost_text(t->arena, c));
    if (tokens > 0 && seconds > 0) {
        printf("tokens         %s a second, %s a run", view_number(t->arena, tokens / seconds, 4), view_number(t->arena, tokens, 4));
        if (usd > 0)
            printf("; %s USD per 1M tokens", view_number(t->arena, usd / tokens * 1e6, 4));
        printf("\n");
    }
    if (p->clock.flops > 0 && seconds > 0)
        printf("utilisation    %.1f %% of %s: matrix products of all devices over the bf16 peak of their tensor engines\n",
               100 * cost_utilisation(c, p->clock.flops, seconds), view_scaled(t->arena, c->flops_peak, 4, "FLOP/s"));
}

uint32_t prof_loops_notes(Arena *a, const Prof *p, const char *notes[LOOP_NOTES]) {
    const Clock *c = &p->clock;
    unsigned long long n = c->unknown_loops, counted = c->counted_loops;
    uint32_t at = 0;
    if (counted)
        notes[at++] = arena_printf(a, "%llu loop%s of unknown length as long as in the run", counted, counted == 1 ? "" : "s");
    if (c->passed)
        notes[at++] = arena_printf(a, "%llu branch%s left out that runs take only when scores come near the number they are masked with (--trips=run with --input looks)",
                                   (unsigned long long)c->passed, c->passed == 1 ? "" : "es");
    if (n && p->assumed_trips)
        notes[at++] = arena_printf(a, "%llu loop%s of unknown length taken for %llu iterations (--trips)", n, n == 1 ? "" : "s",
                                   (unsigned long long)p->assumed_trips);
    else if (n)
        notes[at++] = arena_printf(a, "%llu loop%s of unknown length counted once, so the time is too short: --trips=N says how long, "
                                   "--trips=run with --input counts", n, n == 1 ? "" : "s");
    return at;
}

void prof_loops_print(Arena *a, const Prof *p) {
    const char *notes[LOOP_NOTES];
    for (uint32_t i = 0, n = prof_loops_notes(a, p, notes); i < n; i++)
        printf("note: %s\n", notes[i]);
}

static void json_number(const char *key, double v, bool known) {
    if (known)
        printf("  \"%s\": %.9g,\n", key, v);
    else
        printf("  \"%s\": null,\n", key);
}

void prof_cost_json(Tool *t, const Prof *p) {
    const Cost *c = &p->cost;
    double seconds = seconds_of(p), tokens = prof_tokens(t);
    bool priced = c->usd_per_hour > 0;
    json_number("usd_per_hour", c->usd_per_hour, priced);
    printf("  \"devices\": %u,\n  \"cores_per_device\": %u,\n  \"instance\": \"", c->devices, c->cores_per_device);
    json_text(c->instance.name ? c->instance.name : "");
    printf("\",\n  \"machines\": %u,\n  \"price_basis\": \"", c->machines);
    json_text(c->basis);
    printf("\",\n");
    json_number("usd_per_million_runs", prof_usd(p) * 1e6, priced);
    json_number("flops_peak", c->flops_peak, true);
    json_number("utilisation", cost_utilisation(c, p->clock.flops, seconds), seconds > 0);
    if (tokens > 0) {
        json_number("tokens", tokens, true);
        json_number("tokens_per_second", tokens / seconds, seconds > 0);
        json_number("usd_per_million_tokens", prof_usd(p) / tokens * 1e6, priced);
    }
    printf("  \"unknown_loops\": %llu,\n  \"counted_loops\": %llu,\n  \"assumed_trips\": %llu,\n",
           (unsigned long long)p->clock.unknown_loops, (unsigned long long)p->clock.counted_loops,
           (unsigned long long)(p->clock.unknown_loops ? p->assumed_trips : 0));
}

// --- several machines --------------------------------------------------------------------------------

static void row_print(Tool *t, const Prof *p, double tokens) {
    const Cost *c = &p->cost;
    double seconds = seconds_of(p), usd = prof_usd(p);
    const char *machine = c->machines > 1 ? arena_printf(t->arena, "%u x %s", c->machines, c->instance.name) : c->instance.name;
    printf("%-24s %7u %12.2f", machine, c->devices, seconds * 1e6);
    if (tokens > 0)
        printf(" %12s", view_number(t->arena, seconds > 0 ? tokens / seconds : 0, 4));
    printf(" %10.1f %%", 100 * cost_utilisation(c, p->clock.flops, seconds));
    if (c->usd_per_hour > 0)
        printf(" %10s %16s", view_number(t->arena, c->usd_per_hour, 6), view_number(t->arena, usd * 1e6 / (tokens > 0 ? tokens : 1), 4));
    else
        printf(" %10s %16s", "not known", "not known");
    printf("  %s\n", c->basis);
}

static bool try_make(Tool *t, const char *path, Prof *p) {
    jmp_buf here, *outer = t->ctx->on_fail;
    bool ok = CTX_TRY(t->ctx, here);
    if (ok)
        prof_make(t, path, NULL, p);
    t->ctx->on_fail = outer;
    otrn_status s = t->ctx->err.code;
    if (!ok && s != OTRN_CAPACITY && s != OTRN_UNSUPPORTED)
        longjmp(*outer, 1);
    return ok;
}

int prof_instances(Tool *t) {
    const char *path = t->words.at[0], *list = t->opt.val[OPT_INSTANCE];
    bool json = opt_on(&t->opt, OPT_JSON);
    double tokens = prof_tokens(t);
    if (json)
        printf("[");
    else
        printf("%-24s %7s %12s%s %12s %10s %16s  %s\n", "instance", "devices", "time us", tokens > 0 ? "     tokens/s" : "",
               "utilisation", "USD/h", tokens > 0 ? "USD/1M tokens" : "USD/1M runs", "price");
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        Prof *p = ARENA_NEW(t->arena, Prof);
        t->opt.val[OPT_INSTANCE] = arena_strndup(t->arena, at, strcspn(at, ","));
        bool ok = try_make(t, path, p);
        if (json) {
            printf("%s", at == list ? "" : ",\n");
            if (ok)
                prof_json(t, p);
            else
                printf("null");
        } else if (ok) {
            row_print(t, p, tokens);
            prof_loops_print(t->arena, p);
        } else {
            printf("%-24s cannot run it: %s\n", t->opt.val[OPT_INSTANCE], t->ctx->err.text);
        }
    }
    if (json)
        printf("]\n");
    else
        printf("utilisation: matrix products of all devices over the bf16 peak of their tensor engines\n");
    return 0;
}
