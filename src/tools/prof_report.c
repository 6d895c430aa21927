// SPDX-License-Identifier: Apache-2.0
// prof_report.c — --report: the page of clock/html.h with what only the tool knows: costs and hints of prof, the answer of predict, cost and bakeoff.
#include "base/file.h"
#include "tools/prof.h"

// max_comm: room for what the page keeps a pointer to.
static HtmlReport report_of(Tool *t, const Prof *p, double *max_comm) {
    *max_comm = prof_max_comm(t);
    return (HtmlReport){.art = p->art, .chip = &p->chip, .clock = &p->clock, .view = &p->view, .stalls = &p->stalls, .spills = &p->spills,
                        .traffic = &p->traffic, .max_comm = *max_comm < 0 ? NULL : max_comm, .assumed_trips = p->assumed_trips, .name = prof_name(p)};
}

void prof_report(Tool *t, const Prof *p, const char *path) {
    Arena *a = t->arena;
    HtmlRow costs[4];
    uint32_t ncosts = 0;
    double usd = prof_usd(p), tokens = prof_tokens(t), seconds = p->clock.total_ns * 1e-9;
    const char *basis = cost_text(a, &p->cost);
    costs[ncosts++] = (HtmlRow){"a million runs", usd > 0 ? arena_printf(a, "%s USD", view_number(a, usd * 1e6, 4)) : "not known", basis};
    if (tokens > 0 && seconds > 0)
        costs[ncosts++] = (HtmlRow){"tokens a second", view_number(a, tokens / seconds, 4), arena_printf(a, "%s a run", view_number(a, tokens, 4))};
    if (tokens > 0 && usd > 0)
        costs[ncosts++] = (HtmlRow){"a million tokens", arena_printf(a, "%s USD", view_number(a, usd / tokens * 1e6, 4)), basis};
    if (p->clock.flops > 0)
        costs[ncosts++] = (HtmlRow){"utilisation", arena_printf(a, "%.1f %%", 100 * cost_utilisation(&p->cost, p->clock.flops, seconds)),
                                    "matrix products of all devices over the bf16 peak of their tensor engines"};
    double most;
    HtmlReport r = report_of(t, p, &most);
    r.costs = costs, r.ncosts = ncosts;
    r.hints = rt_hint_rows(a, &p->priced, p->hints, p->nhints), r.nhints = p->nhints;
    Buf page = {.arena = a};
    html_report(a, &r, &page);
    file_write(t->ctx, path, page.at, page.n);
}

// --- an answer ----------------------------------------------------------------------------------------

void answer_add(Tool *t, Answer *o, const char *label, const char *value) {
    VEC_PUSH(t->arena, &o->rows, ((HtmlRow){label, value, NULL}));
}

// What a step has of each roof.
static void roofs_put(Tool *t, const Prof *p, const Told *told, Buf *out) {
    const char *const names[] = {"products", "attention", "between them", "exposed collectives", "host"};
    const double s[] = {told->products_s, told->attention_s, told->between_s, p->traffic.exposed_ns * 1e-9, told->host_s};
    enum { ROOFS = sizeof s / sizeof *s };
    HtmlBar bars[ROOFS];
    double sum = 0;
    for (int i = 0; i < ROOFS; i++)
        sum += s[i];
    for (int i = 0; i < ROOFS; i++)
        bars[i] = (HtmlBar){names[i], arena_printf(t->arena, "%s, %.1f %%", view_seconds(t->arena, s[i]), sum > 0 ? 100 * s[i] / sum : 0), s[i]};
    html_bars(&(HtmlBars){"The step by roofs", bars, ROOFS}, out);
}

static void step_put(Tool *t, const Prof *p, const Told *told, Buf *out) {
    Arena *a = t->arena;
    double most;
    HtmlReport r = report_of(t, p, &most);
    const char *run = html_time(a, p->clock.total_ns), *host = html_time(a, p->chip.dispatch_ns);
    buf_puts(out, "<h2>The step on one device</h2><p class=soft>");
    html_text(out, told->measured ? arena_printf(a, "modelled on %s: a run of %s and %s of dispatch; the step above is measured", p->chip.name, run, host)
                                  : arena_printf(a, "modelled on %s: a run of %s and %s of dispatch make the step above", p->chip.name, run, host));
    buf_puts(out, "</p>\n");
    html_step(a, &r, out);
}

static void notes_put(Tool *t, const Prof *p, Buf *out) {
    const char *notes[LOOP_NOTES + 1];
    uint32_t n = prof_loops_notes(t->arena, p, notes);
    notes[n] = prof_comm_warning(t, p);
    for (uint32_t i = 0; i < n + !!notes[n]; i++)
        buf_puts(out, "<p class=say>"), html_text(out, notes[i]), buf_puts(out, "</p>\n");
}

void answer_report(Tool *t, const Answer *o, const Prof *p, const Told *told) {
    if (!*t->opt.val[OPT_REPORT])
        return;
    Buf page = {.arena = t->arena};
    html_begin(&page, o->title, o->title, o->about);
    if (o->verdict)
        buf_puts(&page, "<p class=say>"), html_text(&page, o->verdict), buf_puts(&page, "</p>\n");
    for (uint32_t i = 0; i < o->bars.n; i++)
        html_bars(&o->bars.at[i], &page);
    if (o->table)
        buf_puts(&page, "<h2>Beside each other</h2>");
    if (o->table)
        html_table(o->table, &page);
    html_rows(o->table ? "Notes" : "Answer", "", o->rows.at, o->rows.n, &page);
    if (p)
        notes_put(t, p, &page);
    if (p && told->by_roofs)
        roofs_put(t, p, told, &page);
    else if (p)
        step_put(t, p, told, &page);
    html_end(&page);
    file_write(t->ctx, t->opt.val[OPT_REPORT], page.at, page.n);
}
