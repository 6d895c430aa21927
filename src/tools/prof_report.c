// SPDX-License-Identifier: Apache-2.0
// prof_report.c — otrn prof --report: the page of clock/html.h with what only the tool knows: costs and hints.
#include "clock/html.h"

#include "base/file.h"
#include "tools/prof.h"

void prof_report(Tool *t, const Prof *p, const char *path) {
    Arena *a = t->arena;
    HtmlRow costs[4];
    uint32_t ncosts = 0;
    double usd = prof_usd(p), tokens = prof_tokens(t), seconds = p->clock.total_ns * 1e-9;
    const char *basis = cost_text(a, &p->cost);
    costs[ncosts++] = (HtmlRow){"a million runs", usd > 0 ? arena_printf(a, "%.4g USD", usd * 1e6) : "not known", basis};
    if (tokens > 0 && seconds > 0)
        costs[ncosts++] = (HtmlRow){"tokens a second", arena_printf(a, "%.6g", tokens / seconds), arena_printf(a, "%.12g a run", tokens)};
    if (tokens > 0 && usd > 0)
        costs[ncosts++] = (HtmlRow){"a million tokens", arena_printf(a, "%.4g USD", usd / tokens * 1e6), basis};
    if (p->clock.flops > 0)
        costs[ncosts++] = (HtmlRow){"utilisation", arena_printf(a, "%.1f %%", 100 * cost_utilisation(&p->cost, p->clock.flops, seconds)),
                                    "matrix products of all devices over the bf16 peak of their tensor engines"};
    double most = prof_max_comm(t);
    HtmlReport r = {.art = p->art, .chip = &p->chip, .clock = &p->clock, .view = &p->view, .stalls = &p->stalls, .spills = &p->spills,
                    .traffic = &p->traffic, .max_comm = most < 0 ? NULL : &most,
                    .name = prof_name(p), .costs = costs, .ncosts = ncosts, .hints = rt_hint_rows(a, &p->priced, p->hints, p->nhints), .nhints = p->nhints};
    Buf page = {.arena = a};
    html_report(a, &r, &page);
    file_write(t->ctx, path, page.at, page.n);
}
