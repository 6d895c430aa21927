// SPDX-License-Identifier: Apache-2.0
// page.c — a run as one HTML file: the profile's page of its step, with the loss and the host's times on top.
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "clock/html.h"
#include "rt/price.h"
#include "train/train.h"

#define PLOT_WIDTH 1000
#define PLOT_HEIGHT 220
#define POINTS 500

static double pick(const StepNote *n, int which) { return which ? n->seconds * 1e3 : n->loss; }

// A curve over steps; of many steps the mean of neighbours.
static void curve(const Train *t, int which, const char *label, Buf *out) {
    const StepNote *notes = t->watch.notes.at;
    uint32_t n = t->watch.notes.n, every = n / POINTS + 1;
    double low = INFINITY, high = -INFINITY;
    for (uint32_t i = 0; i < n; i++)
        low = fmin(low, pick(&notes[i], which)), high = fmax(high, pick(&notes[i], which));
    low = which ? 0 : low, high = high > low ? high : low + 1;
    buf_printf(out, "<p class=soft>%s</p><div class=wide><svg style=\"min-width:620px\" viewBox=\"0 0 %d %d\" role=img><path class=axis d=\"M50 5V%dH%d\"/>", label, PLOT_WIDTH, PLOT_HEIGHT,
               PLOT_HEIGHT - 20, PLOT_WIDTH - 5);
    buf_printf(out, "<text x=0 y=14 class=soft>%.4g</text><text x=0 y=%d class=soft>%.4g</text>", high, PLOT_HEIGHT - 22, low);
    buf_printf(out, "<text x=50 y=%d class=soft>step %lld</text><text x=%d y=%d class=soft text-anchor=end>step %lld</text><path class=edge d=\"",
               PLOT_HEIGHT - 4, (long long)notes[0].step, PLOT_WIDTH - 5, PLOT_HEIGHT - 4, (long long)notes[n - 1].step);
    for (uint32_t i = 0; i < n; i += every) {
        double sum = 0, count = 0;
        for (uint32_t k = i; k < i + every && k < n; k++)
            sum += pick(&notes[k], which), count++;
        double x = 50 + (PLOT_WIDTH - 55) * (n > 1 ? (double)i / (n - 1) : 0);
        double y = 5 + (PLOT_HEIGHT - 25) * (high - sum / count) / (high - low);
        buf_printf(out, "%s%.1f %.1f", i ? "L" : "M", x, y);
    }
    buf_puts(out, "\"/></svg></div>\n");
}

static void tile(Buf *out, const char *value, const char *label) {
    buf_puts(out, "<div class=tile><b>"), html_text(out, value), buf_puts(out, "</b><span>"), html_text(out, label), buf_puts(out, "</span></div>\n");
}

static void tiles(Train *t, Buf *out) {
    Arena *a = t->arena;
    const Watch *w = &t->watch;
    double seconds = 0;
    for (uint32_t i = 0; i < w->notes.n; i++)
        seconds += w->notes.at[i].seconds;
    double each = seconds / w->notes.n;
    buf_puts(out, "<h2>The run</h2><div class=tiles>");
    tile(out, arena_printf(a, "%lld of %lld", (long long)t->at, (long long)t->recipe.steps), "steps");
    tile(out, arena_printf(a, "%.4f", t->loss), "loss of the last step");
    tile(out, arena_printf(a, "%.0f", (double)w->samples / each), arena_printf(a, "%s a second on this host", w->unit));
    tile(out, arena_printf(a, "%.2f ms", each * 1e3), "a step on this host");
    tile(out, arena_printf(a, "%.3f ms", w->priced_us * 1e-3), "a step on the chip, modelled");
    double usd;
    bool known = watch_dollars(t, &usd);
    tile(out, known ? arena_printf(a, "%.3g USD", usd) : "not known", arena_printf(a, "the run on the chip: %s", w->basis ? w->basis : "no time is known"));
    tile(out, arena_printf(a, "%.0f ms", t->start_ms), otrn_exe_cached(t->exe) ? "until the first step, from the cache" : "until the first step, compiled");
    buf_puts(out, "</div>");
    if (w->comm_note && t->opt.max_comm >= 0) // a quarter is told below
        buf_puts(out, "<p class=say>"), html_text(out, w->comm_note), buf_puts(out, "</p>");
}

// --- on other machines -----------------------------------------------------------------------------

static void instance_row(const Train *t, Arena *a, const RtPriced *p, Buf *out) {
    const Cost *c = &p->cost;
    double ns = (double)t->recipe.steps * p->clock.total_ns;
    buf_puts(out, "<tr><td>"), html_text(out, c->machines > 1 ? arena_printf(a, "%u x %s", c->machines, c->instance.name) : c->instance.name);
    buf_printf(out, "<td class=n>%u<td class=n>%s<td class=n>%s<td class=n>%.4g<td class=n>%.3g USD<td>", c->devices, html_time(a, p->clock.total_ns), html_time(a, ns),
               c->usd_per_hour, ns / 3600e9 * c->usd_per_hour);
    html_text(out, c->basis), buf_puts(out, "</tr>\n");
}

// The step compiled for a chip, and the run on each machine to rent that has it. Raises where it cannot be compiled.
static void chip_rows(const Train *t, Arena *a, const Instance *all, uint32_t n, const char *chip, Buf *out) {
    RtPricing how;
    RtPriced own, row;
    rt_exe_price(t->exe, t->ctx, a, chip, false, &how, &own);
    Options published = *how.how.opts;
    published.val[OPT_PRICE] = "", how.how.opts = &published; // --price is of one machine
    if (own.cost.devices == 1)
        how.replicas = (uint32_t)t->ranks.devices;
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(all[i].chip, chip) && all[i].usd_per_hour > 0) {
            how.instance = &all[i];
            rt_price(t->ctx, a, own.art, &how, &row);
            instance_row(t, a, &row, out);
        }
}

static void chip_try(const Train *t, const Instance *all, uint32_t n, const char *chip, Buf *out) {
    Arena scratch;
    jmp_buf jb, *outer = t->ctx->on_fail;
    arena_init(&scratch, t->ctx);
    size_t before = out->n;
    volatile bool good = false;
    if (CTX_TRY(t->ctx, jb)) {
        chip_rows(t, &scratch, all, n, chip, out);
        good = true;
    }
    t->ctx->on_fail = outer;
    arena_fini(&scratch);
    if (good)
        return;
    out->n = before;
    buf_puts(out, "<tr><td>"), html_text(out, chip), buf_puts(out, "<td colspan=6>"), html_text(out, t->ctx->err.text), buf_puts(out, "</tr>\n");
}

static void instances(const Train *t, Buf *out) {
    RtPricing how;
    RtPriced own;
    Instance *all;
    rt_exe_price(t->exe, t->ctx, t->arena, NULL, false, &how, &own);
    uint32_t n = instances_load(t->ctx, t->arena, how.how.opts->val[OPT_CHIPS], &all);
    buf_printf(out, "<h2>The run on each instance</h2><p class=soft>All %lld steps on as many devices, compiled for its chip and modelled; their share of what "
                    "the machine costs.</p><div class=wide><table><tr><th>instance<th class=n>devices<th class=n>a step<th class=n>the run<th class=n>USD/h"
                    "<th class=n>costs<th>price</tr>\n", (long long)t->recipe.steps);
    for (uint32_t i = 0; i < n; i++) {
        bool first = all[i].usd_per_hour > 0;
        for (uint32_t k = 0; k < i && first; k++)
            first = strcmp(all[k].chip, all[i].chip) || all[k].usd_per_hour <= 0;
        if (first)
            chip_try(t, all, n, all[i].chip, out);
    }
    buf_puts(out, "</table></div>\n");
}

// What the host's time was spent on.
static void shares(const Train *t, Buf *out) {
    double all = 0, before = 0, fed = 0, waited = 0;
    for (uint32_t i = 0; i < t->watch.notes.n; i++) {
        const StepNote *n = &t->watch.notes.at[i];
        all += n->seconds, before += n->before, fed += n->fed, waited += n->waited;
    }
    double percent = all > 0 ? 100 / all : 0, rest = all - before - fed - waited;
    buf_printf(out, "<p class=soft>Of this time: the program %.1f %%, inputs %.1f %%, waiting for other processes %.1f %%, between steps (copies for checkpoints, "
                    "what is told) %.1f %%.</p>\n", percent * (rest > 0 ? rest : 0), percent * fed, percent * (waited > 0 ? waited : 0), percent * before);
}

void page_write(Train *t, const char *path) {
    if (!t->watch.notes.n)
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "no step was made, so there is nothing to report");
    otrn_error err = OTRN_ERROR_INIT;
    otrn_profile *profile = NULL;
    const char *part = arena_printf(t->arena, "%s.part.html", path);
    otrn_status s = otrn_profile_make(t->exe, NULL, &profile, &err);
    if (s == OTRN_OK)
        s = otrn_profile_trace(profile, part, &err);
    otrn_profile_free(profile);
    if (s != OTRN_OK)
        ctx_fail(t->ctx, s, (Place){.file = path}, "%s", err.text);
    size_t size;
    const char *page = (const char *)file_read(t->ctx, t->arena, part, &size), *at = strstr(page, HTML_EXTRA);
    remove(part);
    Buf out = {.arena = t->arena};
    size_t before = at ? (size_t)(at - page) : 0;
    buf_put(&out, page, before);
    tiles(t, &out);
    curve(t, 0, "loss, by step", &out);
    curve(t, 1, "milliseconds that a step took on this host", &out);
    shares(t, &out);
    instances(t, &out);
    buf_put(&out, page + before, size - before);
    file_write(t->ctx, path, out.at, out.n);
}
