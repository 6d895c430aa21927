// SPDX-License-Identifier: Apache-2.0
// prof_report.c — otrn prof --report: the page of clock/html.h with what only the tool knows: costs and hints.
#include "clock/html.h"

#include "base/file.h"
#include "tools/prof.h"

void prof_report(Tool *t, const Prof *p, const char *path) {
    Arena *a = t->arena;
    HtmlRow costs[2], *hints = ARENA_NEWN(a, HtmlRow, (size_t)p->hints.n + 1);
    uint32_t ncosts = 0;
    double usd = p->chip.usd_per_core_hour;
    const char *basis = p->instance.name ? arena_printf(a, "%s at %.4g USD/h, its share for one core", p->instance.name, p->instance.usd_per_hour)
                                         : arena_printf(a, "%.4g USD/h for a core, as %s's chip file says", usd, p->chip.name);
    if (usd > 0)
        costs[ncosts++] = (HtmlRow){"USD for a million runs", arena_printf(a, "%.4g USD", usd / 3600 * p->clock.total_ns * 1e-9 * 1e6), basis};
    for (uint32_t i = 0; i < p->hints.n; i++)
        hints[i] = (HtmlRow){arena_printf(a, "%s (%s)", p->hints.at[i].what, p->hints.at[i].how), prof_hint_text(a, p, &p->hints.at[i]),
                             p->hints.at[i].helps ? "" : "does not help"};
    HtmlReport r = {.art = p->art, .chip = &p->chip, .clock = &p->clock, .view = &p->view, .stalls = &p->stalls, .spills = &p->spills,
                    .name = prof_name(p), .costs = costs, .ncosts = ncosts, .hints = hints, .nhints = p->hints.n};
    Buf page = {.arena = a};
    html_report(a, &r, &page);
    file_write(t->ctx, path, page.at, page.n);
}
