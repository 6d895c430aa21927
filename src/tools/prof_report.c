// SPDX-License-Identifier: Apache-2.0
// prof_report.c — otrn prof --report: the page of clock/html.h with what only the tool knows: costs and hints.
#include "clock/html.h"

#include "base/file.h"
#include "tools/prof.h"

void prof_report(Tool *t, const Prof *p, const char *path) {
    Arena *a = t->arena;
    HtmlRow costs[4], *hints = ARENA_NEWN(a, HtmlRow, (size_t)p->hints.n + 1);
    uint32_t ncosts = 0;
    double usd = prof_usd(p), tokens = prof_tokens(t), seconds = p->clock.total_ns * 1e-9;
    const char *basis = cost_text(a, &p->cost);
    costs[ncosts++] = (HtmlRow){"USD for a million runs", usd > 0 ? arena_printf(a, "%.4g USD", usd * 1e6) : "not known", basis};
    if (tokens > 0 && seconds > 0)
        costs[ncosts++] = (HtmlRow){"tokens a second", arena_printf(a, "%.6g", tokens / seconds), arena_printf(a, "%.12g a run", tokens)};
    if (tokens > 0 && usd > 0)
        costs[ncosts++] = (HtmlRow){"USD for a million tokens", arena_printf(a, "%.4g USD", usd / tokens * 1e6), basis};
    if (p->clock.flops > 0)
        costs[ncosts++] = (HtmlRow){"utilisation", arena_printf(a, "%.1f %%", 100 * cost_utilisation(&p->cost, p->clock.flops, seconds)),
                                    "matrix products of all devices over the bf16 peak of their tensor engines"};
    for (uint32_t i = 0; i < p->hints.n; i++)
        hints[i] = (HtmlRow){arena_printf(a, "%s (%s)", p->hints.at[i].what, p->hints.at[i].how), prof_hint_text(a, p, &p->hints.at[i]),
                             p->hints.at[i].helps ? "" : "does not help"};
    HtmlReport r = {.art = p->art, .chip = &p->chip, .clock = &p->clock, .view = &p->view, .stalls = &p->stalls, .spills = &p->spills,
                    .name = prof_name(p), .costs = costs, .ncosts = ncosts, .hints = hints, .nhints = p->hints.n};
    Buf page = {.arena = a};
    html_report(a, &r, &page);
    file_write(t->ctx, path, page.at, page.n);
}
