// SPDX-License-Identifier: Apache-2.0
// html.c — the report's page: numbers, bars and tables. Plots are html_plot.c's.
//
// Bars are boxes whose width is a percentage, so they fit a phone as well as a wide screen; colours are variables with a
// light and a dark value. Everything can be read without JavaScript, which only lets the flame be opened further. All
// text that comes from the user's program is escaped.
#include "clock/html.h"

#include <math.h>
#include <string.h>

#define ROWS_SHOWN 12 // of a table; the rest is behind a fold

void html_text(Buf *out, const char *s) {
    for (; *s; s++)
        switch (*s) {
        case '<':
            buf_puts(out, "&lt;");
            break;
        case '>':
            buf_puts(out, "&gt;");
            break;
        case '&':
            buf_puts(out, "&amp;");
            break;
        case '"':
            buf_puts(out, "&quot;");
            break;
        case '\'':
            buf_puts(out, "&#39;");
            break;
        default:
            put_u8(out, (unsigned char)*s < 0x20 ? ' ' : (uint8_t)*s);
        }
}

const char *html_time(Arena *a, double ns) {
    return ns < 1e3   ? arena_printf(a, "%.0f ns", ns)
           : ns < 1e6 ? arena_printf(a, "%.2f µs", ns * 1e-3)
           : ns < 1e9 ? arena_printf(a, "%.2f ms", ns * 1e-6)
                      : arena_printf(a, "%.3f s", ns * 1e-9);
}

static double percent(const HtmlReport *r, double ns) { return r->clock->total_ns > 0 ? 100 * ns / r->clock->total_ns : 0; }

// --- style -----------------------------------------------------------------------------------------

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fbfbfa;--ink:#1d2125;--soft:#646b73;--line:#dcdfe3;--card:#fff;"
    "--t0:#2f6fd0;--t1:#d9762b;--t2:#1f9488;--t3:#8a55c8;--t4:#7d8790;--t5:#3f9a46;--t6:#b39019;--t7:#c8435f;"
    "--wait:#c3cad2;--late:#94a0ad;--idle:#eceef1}"
    "@media screen and (prefers-color-scheme:dark){:root{--bg:#15181b;--ink:#e4e7ea;--soft:#9aa3ac;--line:#31373d;--card:#1c2024;"
    "--t0:#5b96ec;--t1:#e8934f;--t2:#3fb5a8;--t3:#ab80de;--t4:#8f99a3;--t5:#62b968;--t6:#cfae3d;--t7:#e0708a;"
    "--wait:#48515a;--late:#68737e;--idle:#23282d}}"
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}"
    "main{max-width:1080px;margin:0 auto;padding:20px 16px 60px}h1{font-size:24px;margin:8px 0 2px;overflow-wrap:anywhere}"
    "h2{font-size:18px;margin:34px 0 8px}p{margin:6px 0}.soft{color:var(--soft)}.say{font-size:16px;border-left:4px solid var(--t0);"
    "padding:6px 12px;background:var(--card);margin:14px 0}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:10px;margin:14px 0}"
    ".tile{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:9px 12px}"
    ".tile b{display:block;font-size:20px;font-weight:600}.tile span{color:var(--soft);font-size:13px}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:14px}th{text-align:left;color:var(--soft);"
    "font-weight:500;border-bottom:1px solid var(--line);padding:4px 10px 4px 0;white-space:nowrap}td{border-bottom:1px solid var(--line);"
    "padding:4px 10px 4px 0;vertical-align:top;overflow-wrap:break-word;max-width:420px}td:first-child{min-width:96px}td.n,th.n{text-align:right;white-space:nowrap;padding-left:10px;"
    "font-variant-numeric:tabular-nums}td.b{min-width:90px;width:24%;vertical-align:middle}"
    "@media(max-width:600px){td.b{min-width:44px}td:first-child{min-width:90px}.row{grid-template-columns:70px 1fr}}"
    ".bar{display:flex;height:16px;background:var(--idle);border-radius:3px;overflow:hidden}.bar i{display:block;height:100%}"
    ".big{height:30px}.row{display:grid;grid-template-columns:92px 1fr;gap:8px;align-items:center;margin:5px 0;font-size:14px}"
    ".key{display:flex;flex-wrap:wrap;gap:4px 14px;font-size:13px;margin:8px 0}.key i{display:inline-block;width:11px;height:11px;"
    "border-radius:2px;margin-right:5px}"
    ".t0{background:var(--t0);fill:var(--t0)}.t1{background:var(--t1);fill:var(--t1)}.t2{background:var(--t2);fill:var(--t2)}"
    ".t3{background:var(--t3);fill:var(--t3)}.t4{background:var(--t4);fill:var(--t4)}.t5{background:var(--t5);fill:var(--t5)}"
    ".t6{background:var(--t6);fill:var(--t6)}.t7{background:var(--t7);fill:var(--t7)}.late{background:var(--late);fill:var(--late)}"
    ".wait{background:var(--wait)}.none{background:var(--idle)}"
    "i.w{background-image:repeating-linear-gradient(135deg,rgba(255,255,255,.55) 0 3px,transparent 3px 7px)}"
    "details{margin:8px 0}summary{cursor:pointer;color:var(--soft)}"
    "svg{width:100%;height:auto;display:block;font:12px system-ui,sans-serif}svg text{fill:var(--ink)}svg .soft{fill:var(--soft)}"
    "svg .axis{stroke:var(--line);fill:none}svg .roof{stroke:var(--ink);stroke-width:1.6;fill:none}svg .area{fill:var(--t0);opacity:.35}"
    "svg .edge{stroke:var(--t0);stroke-width:1.4;fill:none}svg .cap{stroke:var(--t7);stroke-dasharray:4 3;fill:none}"
    ".two{display:grid;grid-template-columns:repeat(auto-fit,minmax(300px,1fr));gap:18px}"
    ".bars .row{grid-template-columns:150px 1fr 150px}@media(max-width:600px){.bars .row{grid-template-columns:110px 1fr 110px}}.bars .row span:last-child{font-variant-numeric:tabular-nums}"
    ".flame{position:relative;width:100%;overflow:hidden}.flame div{position:absolute;height:21px;font-size:12px;line-height:20px;"
    "padding:0 4px;overflow:hidden;white-space:nowrap;text-overflow:ellipsis;border-right:1px solid var(--bg);color:#fff;"
    "cursor:pointer}.flame .k{background:#5d6a78}"
    // On paper colours that mean something are printed, nothing scrolls, and a heading stays with what it is about.
    "@page{margin:12mm}@media print{body{background:#fff}main{max-width:none;padding:0}.bar,.bar i,.key i,.flame div{print-color-adjust:exact;"
    "-webkit-print-color-adjust:exact}.wide{overflow:visible}.wide svg{min-width:0!important}table{font-size:10.5px}th{white-space:normal}"
    "th,td{padding-right:5px}td,td:first-child{min-width:0}td.b{min-width:30px;width:14%}h2{break-after:avoid;margin-top:22px}p.soft{break-after:avoid}"
    "tr,svg,.row,.bar,.flame,.tiles,.two section{break-inside:avoid}details:not([open]){display:none}}";

// The flame opens at what is clicked; a second click on it goes back.
static const char script[] =
    "document.querySelectorAll('.flame').forEach(function(f){var n=[].slice.call(f.children);n.forEach(function(e){"
    "e.x=parseFloat(e.style.left);e.w=parseFloat(e.style.width);e.onclick=function(){var z=f.at===e?{x:0,w:100}:e;f.at=z===e?e:null;"
    "n.forEach(function(d){var l=(d.x-z.x)/z.w*100,r=l+d.w/z.w*100;l=Math.max(l,0);r=Math.min(r,100);d.style.left=l+'%';"
    "d.style.width=Math.max(r-l,0)+'%';d.style.display=r-l>0.02?'':'none'})}})})";

// --- pieces ----------------------------------------------------------------------------------------

static void tile(Buf *out, const char *value, const char *label) {
    buf_puts(out, "<div class=tile><b>");
    html_text(out, value);
    buf_puts(out, "</b><span>");
    html_text(out, label);
    buf_puts(out, "</span></div>\n");
}

static void bar_part(Buf *out, double share, const char *kind, const char *title) {
    if (share <= 0.005)
        return;
    buf_printf(out, "<i class=\"%s\" style=\"width:%.3f%%\" title=\"", kind, share);
    html_text(out, title);
    buf_puts(out, "\"></i>");
}

static const char *track_class(int track) {
    static const char *const names[CLOCK_TRACKS] = {"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"};
    return names[track];
}

static void key_put(Buf *out, const char *kind, const char *name) {
    buf_printf(out, "<span><i class=\"%s\"></i>", kind);
    html_text(out, name);
    buf_puts(out, "</span>");
}

static void tiles_put(Arena *a, const HtmlReport *r, Buf *out) {
    const Clock *c = r->clock;
    const ViewRoof *roof = &r->view->roof;
    double least = fmax(roof->compute_ns, roof->memory_ns);
    buf_puts(out, "<div class=tiles>");
    tile(out, html_time(a, c->total_ns), "modelled time of one run");
    if (c->flops > 0)
        tile(out, view_scaled(a, c->flops / c->total_ns * 1e9, 3, "FLOP/s"), arena_printf(a, "matrix products: %s", view_scaled(a, c->flops, 3, "FLOP")));
    if (least > 0)
        tile(out, arena_printf(a, "%.0f %%", 100 * least / c->total_ns),
             arena_printf(a, "of the %s roof", roof->memory_ns > roof->compute_ns ? "HBM" : "tensor engine's"));
    tile(out, view_scaled(a, c->hbm_bytes / c->total_ns * 1e9, 3, "B/s"), arena_printf(a, "HBM traffic: %s", view_scaled(a, c->hbm_bytes, 3, "B")));
    tile(out, view_scaled(a, view_hbm_planned(r->art), 3, "B"), arena_printf(a, "of HBM planned, the device has %s", view_scaled(a, r->chip->hbm_bytes_per_core * (r->art->peer ? 2 : 1), 3, "B")));
    for (uint32_t i = 0; i < r->ncosts && i < 2; i++)
        tile(out, r->costs[i].value, r->costs[i].label);
    buf_puts(out, "</div>\n");
}

static const char *part_class(int track, int kind) { return kind <= PATH_DMA ? track_class(track) : "late"; }

static void path_put(Arena *a, const HtmlReport *r, Buf *out) {
    const Stalls *s = r->stalls;
    buf_puts(out, "<h2>Critical path</h2><p class=soft>A chain of instructions, each of which began when the one before let it: "
                  "its pieces add up to the run. What shortens none of them does not shorten the run.</p><div class=\"bar big\">");
    double late = 0;
    for (int t = 0; t < CLOCK_TRACKS; t++)
        for (int k = 0; k < PATH_KINDS; k++) {
            if (k > PATH_DMA) {
                late += s->path_ns[t][k];
                continue;
            }
            bar_part(out, percent(r, s->path_ns[t][k]), track_class(t),
                     arena_printf(a, "%s, %s: %s, %.1f %%", clock_track_names[t], path_names[k], html_time(a, s->path_ns[t][k]),
                                  percent(r, s->path_ns[t][k])));
        }
    bar_part(out, percent(r, late), "late", arena_printf(a, "signals, starts, completions: %s, %.1f %%", html_time(a, late), percent(r, late)));
    buf_puts(out, "</div><div class=key>");
    for (int t = 0; t < CLOCK_TRACKS; t++)
        if (r->clock->insts[t])
            key_put(out, track_class(t), clock_track_names[t]);
    key_put(out, "late", "signals, starts, completions");
    buf_puts(out, "</div><div class=wide><table><tr><th>engine<th>what<th class=n>time<th class=n>of run<th></tr>\n");
    bool used[CLOCK_TRACKS][PATH_KINDS] = {{0}};
    for (int i = 0; i < ROWS_SHOWN; i++) {
        int bt = -1, bk = 0;
        for (int t = 0; t < CLOCK_TRACKS; t++)
            for (int k = 0; k < PATH_KINDS; k++)
                if (!used[t][k] && s->path_ns[t][k] > 0 && (bt < 0 || s->path_ns[t][k] > s->path_ns[bt][bk]))
                    bt = t, bk = k;
        if (bt < 0)
            break;
        used[bt][bk] = true;
        buf_printf(out, "<tr><td>%s<td>%s<td class=n>%s<td class=n>%.1f %%<td class=b><div class=bar>", clock_track_names[bt], path_names[bk],
                   html_time(a, s->path_ns[bt][bk]), percent(r, s->path_ns[bt][bk]));
        bar_part(out, percent(r, s->path_ns[bt][bk]), part_class(bt, bk), "");
        buf_puts(out, "</div></tr>\n");
    }
    buf_puts(out, "</table></div>\n");
}

static void engines_put(Arena *a, const HtmlReport *r, Buf *out) {
    const Stalls *s = r->stalls;
    buf_puts(out, "<h2>Engines</h2><p class=soft>Full colour: at work. Striped: stands still, waiting for the engine of that colour; grey: for "
                  "signals, starts and its sequencer. Empty: done.</p>\n");
    for (int t = 0; t < CLOCK_TRACKS; t++) {
        if (!r->clock->insts[t])
            continue;
        buf_printf(out, "<div class=row><span>%s</span><div class=\"bar\">", clock_track_names[t]);
        bar_part(out, percent(r, s->busy_ns[t]), track_class(t), arena_printf(a, "at work: %s, %.1f %%", html_time(a, s->busy_ns[t]), percent(r, s->busy_ns[t])));
        for (int k = 0; k < STALL_COUNT; k++)
            bar_part(out, percent(r, s->stall_ns[t][k]), k < CLOCK_TRACKS ? arena_printf(a, "%s w", track_class(k)) : "wait",
                     arena_printf(a, "waits for %s: %s, %.1f %%", stall_names[k], html_time(a, s->stall_ns[t][k]), percent(r, s->stall_ns[t][k])));
        buf_puts(out, "</div></div>\n");
    }
    buf_puts(out, "<details><summary>as a table</summary><div class=wide><table><tr><th>engine<th class=n>instructions<th class=n>busy<th class=n>"
                  "of run<th class=n>idle at the end<th>waits for</tr>\n");
    for (int t = 0; t < CLOCK_TRACKS; t++) {
        if (!r->clock->insts[t])
            continue;
        buf_printf(out, "<tr><td>%s<td class=n>%llu<td class=n>%s<td class=n>%.1f %%<td class=n>%.1f %%<td>", clock_track_names[t],
                   (unsigned long long)r->clock->insts[t], html_time(a, s->busy_ns[t]), percent(r, s->busy_ns[t]), percent(r, s->idle_ns[t]));
        for (int k = 0, n = 0; k < STALL_COUNT; k++)
            if (percent(r, s->stall_ns[t][k]) >= 0.05)
                buf_printf(out, "%s%s&nbsp;%.1f&nbsp;%%", n++ ? ", " : "", stall_names[k], percent(r, s->stall_ns[t][k]));
        buf_puts(out, "</tr>\n");
    }
    buf_puts(out, "</table></div></details>\n");
}

static void group_row(Arena *a, const HtmlReport *r, const Group *g, double most, Buf *out) {
    buf_puts(out, "<tr><td>");
    html_text(out, g->name);
    buf_printf(out, "<td class=n>%s<td class=n>%.1f %%<td class=b><div class=bar>", html_time(a, g->path_ns), percent(r, g->path_ns));
    bar_part(out, most > 0 ? 100 * g->path_ns / most : 0, track_class(g->track), "");
    buf_printf(out, "</div><td>%s<td class=n>%s<td class=n>%s<td class=n>%s</tr>\n", clock_track_names[g->track], html_time(a, g->most_ns),
               view_scaled(a, g->flops, 3, "FLOP"), view_scaled(a, g->hbm_bytes, 3, "B"));
}

static void group_table(Arena *a, const HtmlReport *r, const GroupTable *g, uint32_t from, uint32_t to, Buf *out) {
    double most = g->at.n ? g->at.at[0].path_ns : 0;
    buf_printf(out, "<div class=wide><table><tr><th>%s<th class=n>on the path<th class=n>of run<th><th>busiest engine<th class=n>busy<th class=n>products"
                    "<th class=n>HBM</tr>\n", group_names[g->by]);
    for (uint32_t i = from; i < to && i < g->at.n; i++)
        group_row(a, r, &g->at.at[i], most, out);
    buf_puts(out, "</table></div>\n");
}

static void groups_put(Arena *a, const HtmlReport *r, Buf *out) {
    GroupTable g;
    for (int by = GROUP_KINDS - 1; by >= 0; by--) {
        group_make(a, r->art, r->clock, r->view, r->stalls, (GroupBy)by, &g);
        if (by >= GROUP_SCOPE && !g.named)
            continue;
        bool open = by == GROUP_LAYER || by == GROUP_LINE;
        buf_printf(out, "%s%s%s", open ? "<h2>By " : "<details><summary>by ", group_names[by], open ? "</h2>" : "</summary>");
        group_table(a, r, &g, 0, by == GROUP_LAYER ? 40 : ROWS_SHOWN, out);
        uint32_t shown = by == GROUP_LAYER ? 40 : ROWS_SHOWN;
        if (g.at.n > shown) {
            buf_printf(out, "<details><summary>%u more</summary>", g.at.n - shown);
            group_table(a, r, &g, shown, shown + 200, out);
            if (g.at.n > shown + 200)
                buf_printf(out, "<p class=soft>and %u below those</p>", g.at.n - shown - 200);
            buf_puts(out, "</details>");
        }
        buf_puts(out, open ? "" : "</details>\n");
    }
}

static const char *line_text(Arena *a, const HtmlReport *r, uint32_t line) {
    return line == STALL_NO_LINE ? "" : group_line_text(a, &r->view->lines.at[line]);
}

static void waits_put(Arena *a, const HtmlReport *r, Buf *out) {
    const Stalls *s = r->stalls;
    buf_puts(out, "<h2>Longest waits</h2><div class=wide><table><tr><th>engine<th>at<th>waits for<th>of<th class=n>time<th class=n>of run</tr>\n");
    for (uint32_t i = 0, n = 0; i < s->rows.n && n < ROWS_SHOWN; i++) {
        const StallRow *w = &s->rows.at[i];
        if (percent(r, s->busy_ns[w->track]) < 1)
            continue; // it has next to nothing to do
        n++;
        buf_printf(out, "<tr><td>%s<td>", clock_track_names[w->track]);
        html_text(out, line_text(a, r, w->line));
        buf_printf(out, "<td>%s<td>", stall_names[w->why]);
        html_text(out, line_text(a, r, w->for_line));
        buf_printf(out, "<td class=n>%s<td class=n>%.1f %%</tr>\n", html_time(a, w->ns), percent(r, w->ns));
    }
    buf_puts(out, "</table></div>\n");
}

static void spills_put(Arena *a, const HtmlReport *r, Buf *out) {
    if (!r->spills || !r->spills->rows.n)
        return;
    buf_printf(out, "<h2>Spills</h2><p class=soft>%s come back from HBM because they did not stay on the chip between steps.</p><div class=wide><table>"
                    "<tr><th class=n>bytes<th>made at<th>read at<th>why<th class=n>later by</tr>\n", view_scaled(a, r->spills->bytes, 3, "B"));
    for (uint32_t i = 0; i < r->spills->rows.n && i < ROWS_SHOWN; i++) {
        const SpillRow *s = &r->spills->rows.at[i];
        buf_printf(out, "<tr><td class=n>%s<td>", view_scaled(a, s->bytes, 3, "B"));
        html_text(out, line_text(a, r, s->from));
        buf_puts(out, "<td>");
        html_text(out, line_text(a, r, s->to));
        buf_printf(out, "<td>%s<td class=n>%s</tr>\n", spill_names[s->why], html_time(a, s->between_ns));
    }
    buf_puts(out, "</table></div>\n");
}

static void traffic_put(Arena *a, const HtmlReport *r, Buf *out) {
    const Traffic *t = r->traffic;
    if (!t->rows.n)
        return;
    const char *warning = traffic_warning(a, t, r->view, r->max_comm ? *r->max_comm : TRAFFIC_MOST);
    buf_printf(out, "<h2>Collectives</h2><p class=soft>%.1f %% of the run; %.1f %% are exposed: what free links would save. A device sends %s.</p>",
               100 * traffic_share(t), 100 * traffic_exposed(t), view_scaled(a, t->bytes, 3, "B"));
    if (warning) {
        buf_puts(out, "<p class=say>");
        html_text(out, warning);
        if (r->max_comm)
            buf_printf(out, "; more than --max-comm=%.4g%%", 100 * *r->max_comm);
        buf_puts(out, "</p>");
    }
    buf_puts(out, "<div class=wide><table><tr><th>kind<th>group<th>way<th class=n>count<th class=n>bytes<th class=n>busy<th class=n>exposed<th class=n>"
                  "of run<th><th>most of it at</tr>\n");
    for (uint32_t i = 0; i < t->rows.n; i++) {
        const TrafficRow *row = &t->rows.at[i];
        buf_printf(out, "<tr><td>%s<td>%s<td>%s<td class=n>%.0f<td class=n>%s<td class=n>%s<td class=n>%s<td class=n>%.1f %%<td class=b><div class=bar>",
                   hlo_op_rows[row->op].name, traffic_group(a, row), traffic_way(a, row), row->count, view_scaled(a, row->bytes, 3, "B"), html_time(a, row->busy_ns),
                   html_time(a, row->exposed_ns), percent(r, row->exposed_ns));
        bar_part(out, percent(r, row->exposed_ns), track_class(CLOCK_TRACKS - 1), "exposed");
        buf_puts(out, "</div><td>");
        html_text(out, line_text(a, r, row->line));
        buf_puts(out, "</tr>\n");
    }
    buf_puts(out, "</table></div>\n");
}

void html_rows(const char *title, const char *note, const HtmlRow *rows, uint32_t n, Buf *out) {
    if (!n)
        return;
    buf_printf(out, "<h2>%s</h2><p class=soft>", title);
    html_text(out, note);
    buf_puts(out, "</p><div class=wide><table>\n");
    for (uint32_t i = 0; i < n; i++) {
        buf_puts(out, "<tr><td>");
        html_text(out, rows[i].label);
        buf_puts(out, "<td>");
        html_text(out, rows[i].value);
        buf_puts(out, "<td class=soft>");
        html_text(out, rows[i].note ? rows[i].note : "");
        buf_puts(out, "</tr>\n");
    }
    buf_puts(out, "</table></div>\n");
}

void html_table(const HtmlTable *t, Buf *out) {
    buf_puts(out, "<div class=wide><table><tr>");
    for (uint32_t i = 0; i < t->cols; i++)
        buf_puts(out, i ? "<th class=n>" : "<th>"), html_text(out, t->head[i]);
    buf_puts(out, "</tr>\n");
    for (uint32_t i = 0; i < t->rows; i++) {
        const char *const *row = t->cells + (size_t)i * t->cols;
        buf_puts(out, "<tr>");
        for (uint32_t k = 0; k < t->cols && row[k]; k++) {
            if (k + 1 < t->cols && !row[k + 1])
                buf_printf(out, "<td colspan=%u>", t->cols - k);
            else
                buf_puts(out, k ? "<td class=n>" : "<td>");
            html_text(out, row[k]);
        }
        buf_puts(out, "</tr>\n");
    }
    buf_puts(out, "</table></div>\n");
}

void html_bars(const HtmlBars *bars, Buf *out) {
    double most = 0;
    for (uint32_t i = 0; i < bars->n; i++)
        most = fmax(most, bars->at[i].value);
    buf_printf(out, "<h2>%s</h2><div class=bars>\n", bars->title);
    for (uint32_t i = 0; i < bars->n; i++) {
        const HtmlBar *b = &bars->at[i];
        buf_puts(out, "<div class=row><span>");
        html_text(out, b->label);
        buf_puts(out, "</span><div class=bar>");
        bar_part(out, most > 0 ? 100 * b->value / most : 0, "t0", b->text);
        buf_puts(out, "</div><span>");
        html_text(out, b->text);
        buf_puts(out, "</span></div>\n");
    }
    buf_puts(out, "</div>\n");
}

HtmlRow html_cost(Arena *a, const Cost *c, double ns) {
    const char *usd = c->usd_per_hour > 0 ? arena_printf(a, "%s USD", view_number(a, c->usd_per_hour / 3600 * ns * 1e-9 * 1e6, 4)) : "not known";
    return (HtmlRow){"a million runs", usd, cost_text(a, c)};
}

// --- the page --------------------------------------------------------------------------------------

void html_begin(Buf *out, const char *title, const char *heading, const char *under) {
    buf_puts(out, "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width,initial-scale=1\"><title>");
    html_text(out, title);
    buf_printf(out, "</title><style>%s</style>\n<main><h1>", style);
    html_text(out, heading);
    buf_puts(out, "</h1><p class=soft>");
    html_text(out, under);
    buf_puts(out, "</p>\n");
}

void html_end(Buf *out) { buf_printf(out, "</main><script>%s</script></html>\n", script); }

static void loops_put(const HtmlReport *r, Buf *out) {
    unsigned long long n = r->clock->unknown_loops;
    if (n && r->assumed_trips)
        buf_printf(out, "<p>%llu loop%s of unknown length taken for %llu iterations.</p>", n, n == 1 ? "" : "s", (unsigned long long)r->assumed_trips);
    else if (n)
        buf_printf(out, "<p>%llu loop%s of unknown length counted once.</p>", n, n == 1 ? "" : "s");
}

void html_step(Arena *a, const HtmlReport *r, Buf *out) {
    const Clock *c = r->clock;
    GroupTable layers;
    group_make(a, r->art, c, r->view, r->stalls, GROUP_LAYER, &layers);
    if (!layers.named)
        group_make(a, r->art, c, r->view, r->stalls, GROUP_LINE, &layers);
    tiles_put(a, r, out);
    buf_puts(out, "<p class=say>");
    html_text(out, group_verdict(a, c, r->stalls, &layers));
    buf_puts(out, "</p>\n" HTML_EXTRA "\n");
    if (r->stalls->known) {
        path_put(a, r, out);
        html_flame(a, r, out);
        engines_put(a, r, out);
    }
    traffic_put(a, r, out);
    html_timeline(a, r, out);
    groups_put(a, r, out);
    buf_puts(out, "<div class=two><section>");
    html_roofline(a, r, &layers, out);
    buf_puts(out, "</section><section>");
    html_memory(a, r, out);
    buf_puts(out, "</section></div>\n");
    if (r->stalls->known)
        waits_put(a, r, out);
    spills_put(a, r, out);
    html_rows("Hints", "Each was tried: the program compiled so, and priced.", r->hints, r->nhints, out);
    html_rows("Costs", "From the modelled time and the price that stands beside each.", r->costs, r->ncosts, out);
    loops_put(r, out);
    if (c->approximate)
        buf_puts(out, "<p>A very long loop without a steady state was cut short; its last iteration was multiplied.</p>");
}

void html_report(Arena *a, const HtmlReport *r, Buf *out) {
    const char *devices = r->art->partitions > 1 ? arena_printf(a, ", one of %u devices", r->art->partitions) : "";
    html_begin(out, arena_printf(a, "%s on %s", r->name, r->chip->name), r->name,
               arena_printf(a, "modelled on %s%s%s, opentrn", r->chip->name, r->art->peer ? ", two cores as one" : "", devices));
    html_step(a, r, out);
    html_end(out);
}
