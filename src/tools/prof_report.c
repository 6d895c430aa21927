// SPDX-License-Identifier: Apache-2.0
// prof_report.c — --report: the page of clock/html.h with what only the tool knows: costs and hints of prof, the answer of predict, cost and bakeoff.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
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

// --- its data -----------------------------------------------------------------------------------------

_Noreturn static void data_fail(Tool *t, const char *path) {
    ctx_fail(t->ctx, OTRN_IO, (Place){.file = path}, "cannot write it: %s", strerror(errno));
}

Caught json_begin(Tool *t) {
    Caught c = {.file = tmpfile()};
    if (!c.file || fflush(stdout) || (c.out = dup(STDOUT_FILENO)) < 0 || dup2(fileno(c.file), STDOUT_FILENO) < 0)
        data_fail(t, "a temporary file");
    return c;
}

Buf json_end(Tool *t, Caught c) {
    Buf data = {.arena = t->arena};
    char piece[4096];
    bool whole = !fflush(stdout);
    if (dup2(c.out, STDOUT_FILENO) < 0 || !whole)
        data_fail(t, "a temporary file");
    close(c.out);
    rewind(c.file);
    for (size_t n; (n = fread(piece, 1, sizeof piece, c.file)) > 0;)
        buf_put(&data, piece, n);
    fclose(c.file);
    return data;
}

static void cell_put(Buf *out, const Json *v) {
    const char *text = !v || v->kind == JSON_NULL ? "" : v->kind == JSON_TRUE ? "true" : v->kind == JSON_FALSE ? "false" : v->text;
    bool quoted = strpbrk(text, ",\"\n");
    if (!quoted)
        buf_puts(out, text);
    for (const char *s = quoted ? text : ""; *s; s++)
        buf_puts(out, s == text ? "\"" : ""), buf_puts(out, *s == '"' ? "\"" : ""), buf_put(out, s, 1);
    buf_puts(out, quoted ? "\"" : "");
}

// A line for each object of the data, a column for each name that stands for one value.
static Buf sheet_make(Tool *t, const Buf *data) {
    const Json *all = json_parse(t->ctx, t->arena, "data", data->at, data->n), *rows = all->kind == JSON_LIST ? all->at : all;
    Buf out = {.arena = t->arena};
    VEC(const char *) names = {0};
    for (uint32_t i = 0, n = all->kind == JSON_LIST ? all->n : 1; i < n; i++)
        for (uint32_t k = 0; k < rows[i].n; k++) {
            const Json *v = &rows[i].at[k];
            uint32_t at = 0;
            while (at < names.n && strcmp(names.at[at], v->name))
                at++;
            if (at == names.n && v->kind != JSON_LIST && v->kind != JSON_OBJECT)
                VEC_PUSH(t->arena, &names, v->name);
        }
    for (uint32_t k = 0; k < names.n; k++)
        buf_puts(&out, k ? "," : ""), buf_puts(&out, names.at[k]);
    for (uint32_t i = 0, n = all->kind == JSON_LIST ? all->n : 1; i < n; i++)
        for (uint32_t k = 0; k < names.n; k++)
            buf_puts(&out, k ? "," : "\n"), cell_put(&out, json_get(&rows[i], names.at[k]));
    buf_puts(&out, "\n");
    return out;
}

// FILE.html, FILE.json and FILE.csv: all of them, or none. Behind another name stands the page alone.
static void files_write(Tool *t, const char *path, const Buf *page, const Buf *data) {
    const char *end = strrchr(path, '.');
    if (!end || (strcmp(end, ".html") && strcmp(end, ".htm"))) {
        file_write(t->ctx, path, page->at, page->n);
        return;
    }
    Buf sheet = sheet_make(t, data);
    const Buf *bytes[] = {page, data, &sheet};
    const char *const ends[] = {end, ".json", ".csv"};
    enum { FILES = sizeof ends / sizeof *ends };
    const char *names[FILES], *parts[FILES];
    for (int i = 0; i < FILES; i++) {
        names[i] = arena_printf(t->arena, "%.*s%s", (int)(end - path), path, ends[i]);
        parts[i] = arena_printf(t->arena, "%s.part", names[i]);
    }
    jmp_buf here, *outer = t->ctx->on_fail;
    bool ok = CTX_TRY(t->ctx, here);
    if (ok) {
        for (int i = 0; i < FILES; i++)
            file_write(t->ctx, parts[i], bytes[i]->at, bytes[i]->n);
        for (int i = 0; i < FILES; i++)
            if (rename(parts[i], names[i]))
                data_fail(t, names[i]);
    }
    t->ctx->on_fail = outer;
    for (int i = 0; i < FILES && !ok; i++)
        unlink(parts[i]);
    if (!ok)
        longjmp(*outer, 1);
}

void answer_report(Tool *t, const Answer *o, const Prof *p, const Told *told, Buf data) {
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
    files_write(t, t->opt.val[OPT_REPORT], &page, &data);
}
