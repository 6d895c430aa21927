// SPDX-License-Identifier: Apache-2.0
// html_plot.c — the report's plots: roofline, memories and engines over the run as SVG, the critical path as a flame of boxes.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/elem.h"
#include "clock/html.h"
#include "mach/price.h"

// --- the roofline ----------------------------------------------------------------------------------

enum { PLOT_W = 480, PLOT_H = 300, LEFT = 92, RIGHT = 14, TOP = 14, BOTTOM = 40 };

typedef struct Axes { // both logarithmic
    double x0, x1, y0, y1;
} Axes;

static double decades(double v) { return elem_log(v) / 2.302585092994046; } // its logarithm to the base of 10

static double plot_x(const Axes *p, double v) {
    return LEFT + (PLOT_W - LEFT - RIGHT) * (decades(v) - p->x0) / (p->x1 - p->x0);
}
static double plot_y(const Axes *p, double v) {
    return PLOT_H - BOTTOM - (PLOT_H - TOP - BOTTOM) * (decades(v) - p->y0) / (p->y1 - p->y0);
}

static void axes_put(Arena *a, const Axes *p, Buf *out) {
    for (int e = (int)ceil(p->x0); e <= (int)floor(p->x1); e++) {
        double x = plot_x(p, elem_pow(10, e));
        buf_printf(out, "<path class=axis d=\"M%.1f %dV%d\"/><text class=soft x=%.1f y=%d text-anchor=%s>%s</text>\n", x, TOP, PLOT_H - BOTTOM, x,
                   PLOT_H - BOTTOM + 16, e < (int)floor(p->x1) ? "middle" : "end", view_number(a, elem_pow(10, e), 4));
    }
    for (int e = (int)ceil(p->y0); e <= (int)floor(p->y1); e++) {
        double y = plot_y(p, elem_pow(10, e));
        buf_printf(out, "<path class=axis d=\"M%d %.1fH%d\"/><text class=soft x=%d y=%.1f text-anchor=end>%s</text>\n", LEFT, y, PLOT_W - RIGHT,
                   LEFT - 5, y + 4, view_scaled(a, elem_pow(10, e), 3, "FLOP/s"));
    }
    buf_printf(out, "<text class=soft x=%d y=%d text-anchor=middle>FLOP for each byte of HBM traffic</text>\n", (LEFT + PLOT_W) / 2, PLOT_H - 6);
}

void html_roofline(Arena *a, const HtmlReport *r, const GroupTable *groups, Buf *out) {
    const ViewRoof *roof = &r->view->roof;
    buf_puts(out, "<h2>Roofline</h2>");
    if (roof->flops <= 0 || roof->hbm_bytes <= 0 || roof->compute_ns <= 0 || roof->memory_ns <= 0) {
        buf_puts(out, "<p class=soft>No matrix products beside HBM traffic: there is no roofline to draw.</p>");
        return;
    }
    double peak = roof->flops / roof->compute_ns * 1e9, bandwidth = roof->hbm_bytes / roof->memory_ns * 1e9;
    double at = roof->flops / roof->hbm_bytes;
    Axes p = {floor(decades(fmin(at, roof->ridge))) - 1, ceil(decades(fmax(at, roof->ridge))) + 1, floor(decades(fmin(roof->achieved, peak))) - 1,
              ceil(decades(peak))};
    buf_printf(out, "<p class=soft>The large dot is the program: %s of %s that the roofs allow. Small dots: what is named on the left of the tables, while it is busy.</p>"
                    "<svg viewBox=\"0 0 %d %d\" role=img aria-label=\"roofline\">\n",
               view_scaled(a, roof->achieved, 3, "FLOP/s"), view_scaled(a, roof->attainable, 3, "FLOP/s"), PLOT_W, PLOT_H);
    axes_put(a, &p, out);
    double low = elem_pow(10, p.x0), left = fmax(bandwidth * low, elem_pow(10, p.y0)), from = left / bandwidth;
    buf_printf(out, "<path class=roof d=\"M%.1f %.1fL%.1f %.1fH%d\"/>\n", plot_x(&p, from), plot_y(&p, left), plot_x(&p, roof->ridge), plot_y(&p, peak),
               PLOT_W - RIGHT);
    for (uint32_t i = 0; i < groups->at.n && i < 60; i++) {
        const Group *g = &groups->at.at[i];
        if (g->flops <= 0 || g->hbm_bytes <= 0 || g->most_ns <= 0)
            continue;
        double x = fmin(fmax(g->flops / g->hbm_bytes, low), elem_pow(10, p.x1)), y = fmin(fmax(g->flops / g->most_ns * 1e9, elem_pow(10, p.y0)), peak);
        buf_printf(out, "<circle class=t1 opacity=.65 r=3 cx=%.1f cy=%.1f><title>", plot_x(&p, x), plot_y(&p, y));
        html_text(out, g->name);
        buf_printf(out, ": %s, %.3g FLOP/B</title></circle>\n", view_scaled(a, y, 3, "FLOP/s"), x);
    }
    buf_printf(out, "<circle class=t0 r=6 cx=%.1f cy=%.1f><title>the program: %s</title></circle></svg>\n", plot_x(&p, at), plot_y(&p, roof->achieved),
               view_scaled(a, roof->achieved, 3, "FLOP/s"));
}

// --- memories --------------------------------------------------------------------------------------

void html_memory(Arena *a, const HtmlReport *r, Buf *out) {
    enum { W = 480, H = 74 };
    buf_puts(out, "<h2>Memory over the run</h2>");
    if (!r->view->has_memory)
        return;
    for (int m = 0; m < VIEW_MEMORIES; m++) {
        const ViewMemory *v = &r->view->memory[m];
        double top = fmax(v->peak_bytes, v->peak_bytes > 0.5 * v->capacity_bytes ? v->capacity_bytes : 0);
        top = top > 0 ? top : 1;
        buf_printf(out, "<p><b>%s</b> peak %s, %.1f %% of %s</p><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=none role=img aria-label=\"%s\"><path class=area d=\"M0 %d",
                   view_memory_names[m], view_scaled(a, v->peak_bytes, 3, "B"), 100 * v->peak_bytes / v->capacity_bytes,
                   view_scaled(a, v->capacity_bytes, 3, "B"), W, H, view_memory_names[m], H);
        for (int b = 0; b < VIEW_BINS; b++) {
            double y = H - (H - 4) * v->bins[b] / top;
            buf_printf(out, "L%.1f %.1fL%.1f %.1f", W * (double)b / VIEW_BINS, y, W * (b + 1.0) / VIEW_BINS, y);
        }
        buf_printf(out, "L%d %dZ\"/>", W, H);
        if (top >= v->capacity_bytes)
            buf_printf(out, "<path class=cap d=\"M0 %.1fH%d\"/>", H - (H - 4) * v->capacity_bytes / top, W);
        buf_puts(out, "</svg>\n");
    }
    buf_printf(out, "<p class=soft>From 0 to %s; SBUF and PSUM are those of one core.</p>\n", html_time(a, r->clock->total_ns));
}

// --- engines over the run --------------------------------------------------------------------------

enum { BINS = 200 };

static void bin_add(double *bins, double from, double to, double share, double ns_per_bin) {
    for (int b = (int)(from / ns_per_bin); b < BINS && b * ns_per_bin < to; b++) {
        double lo = fmax(from, b * ns_per_bin), hi = fmin(to, (b + 1) * ns_per_bin);
        if (hi > lo)
            bins[b] += (hi - lo) / ns_per_bin * share;
    }
}

// Iterations that were added at once are as busy as those they repeat.
static void jumps_add(const Clock *c, double (*bins)[BINS], double ns_per_bin) {
    for (uint32_t j = 0; j < c->jumps.n; j++) {
        const ClockJump *jump = &c->jumps.at[j];
        double busy[CLOCK_TRACKS] = {0}, period = (double)jump->period * 1e-3;
        for (uint32_t i = jump->first; i < jump->event && i < c->links.n; i++)
            busy[c->events.at[i].track] += c->events.at[i].core ? 0 : (double)c->links.at[i].busy * 1e-3; // the timeline is the first core's
        for (int t = 0; t < CLOCK_TRACKS && period > 0; t++)
            bin_add(bins[t], jump->from_ns, jump->to_ns, fmin(busy[t] / period, 1), ns_per_bin);
    }
}

void html_timeline(Arena *a, const HtmlReport *r, Buf *out) {
    const Clock *c = r->clock;
    enum { W = 1000, ROW = 26, NAME = 86 };
    double(*bins)[BINS] = (double(*)[BINS])ARENA_NEWN(a, double, CLOCK_TRACKS * BINS), ns = c->total_ns / BINS, until[CLOCK_TRACKS] = {0};
    if (!c->events.n || ns <= 0)
        return;
    for (uint32_t i = 0; i < c->events.n; i++) {
        const ClockEvent *e = &c->events.at[i];
        if (e->core)
            continue;
        bin_add(bins[e->track], fmax(e->begin_ns, until[e->track]), e->end_ns, 1, ns);
        until[e->track] = fmax(until[e->track], e->end_ns);
    }
    jumps_add(c, bins, ns);
    int rows = 0;
    for (int t = 0; t < CLOCK_TRACKS; t++)
        rows += c->insts[t] > 0;
    buf_printf(out, "<h2>Engines over the run</h2><div class=wide><svg style=\"min-width:620px\" viewBox=\"0 0 %d %d\" role=img aria-label=\"engines over the run\">\n", W,
               rows * ROW + 18);
    int y = 0;
    for (int t = 0; t < CLOCK_TRACKS; t++) {
        if (!c->insts[t])
            continue;
        buf_printf(out, "<text x=0 y=%d>%s</text>", y + 17, clock_track_names[t]);
        for (int b = 0; b < BINS; b++)
            if (bins[t][b] > 0.01)
                buf_printf(out, "<rect class=t%d opacity=%.2f x=%.1f y=%d width=%.2f height=%d />", t, 0.12 + 0.88 * fmin(bins[t][b], 1),
                           NAME + (W - NAME) * (double)b / BINS, y + 2, (W - NAME) / (double)BINS, ROW - 4);
        buf_puts(out, "\n");
        y += ROW;
    }
    buf_printf(out, "<text class=soft x=%d y=%d>0</text><text class=soft x=%d y=%d text-anchor=end>%s</text></svg></div>\n", NAME, y + 14, W, y + 14,
               html_time(a, c->total_ns));
}

// --- the flame -------------------------------------------------------------------------------------

typedef struct Node {
    const char *name;
    double ns;
    int track; // of a leaf, else -1
    struct Node *child, *next;
} Node;

#define FLAME_DEPTH 7
#define FLAME_LEAST 0.0008 // of the width

static Node *node_child(Arena *a, Node *n, const char *name, size_t len, int track) {
    for (Node *c = n->child; c; c = c->next)
        if (c->track == track && strlen(c->name) == len && !memcmp(c->name, name, len))
            return c;
    Node *c = ARENA_NEW(a, Node);
    *c = (Node){.name = arena_strndup(a, name, len), .track = track, .next = n->child};
    n->child = c;
    return c;
}

static void flame_add(Arena *a, Node *root, const ArtLoc *l, int track, double ns) {
    const char *scope = group_scope(a, l->name ? l->name : "", false);
    ViewLine line = {.file = l->file ? l->file : "", .name = l->name ? l->name : "", .line = l->line, .op = l->op};
    Node *n = root;
    n->ns += ns;
    for (int depth = 0; *scope && depth < FLAME_DEPTH - 3; depth++) {
        size_t k = strcspn(scope, "/");
        n = node_child(a, n, scope, k, -1);
        n->ns += ns;
        scope += k + (scope[k] == '/');
    }
    const char *text = group_line_text(a, &line);
    n = node_child(a, n, text, strlen(text), -1);
    n->ns += ns;
    n = node_child(a, n, clock_track_names[track], strlen(clock_track_names[track]), track);
    n->ns += ns;
}

static int node_order(const void *x, const void *y) {
    const Node *a = *(Node *const *)x, *b = *(Node *const *)y;
    return a->ns != b->ns ? (a->ns > b->ns ? -1 : 1) : strcmp(a->name, b->name);
}

static int flame_put(Arena *a, const Node *n, double left, double total, int depth, Buf *out) {
    double width = n->ns / total;
    if (width < FLAME_LEAST)
        return depth;
    static const char *const kinds[] = {"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"};
    buf_printf(out, "<div class=%s style=\"left:%.3f%%;width:%.3f%%;top:%dpx\" title=\"", n->track < 0 ? "k" : kinds[n->track], 100 * left, 100 * width, depth * 22);
    html_text(out, n->name);
    buf_printf(out, ": %s, %.1f %%\">", html_time(a, n->ns), 100 * width);
    if (width > 0.004)
        html_text(out, n->name);
    buf_puts(out, "</div>\n");
    uint32_t count = 0;
    for (Node *c = n->child; c; c = c->next)
        count++;
    Node **kids = ARENA_NEWN(a, Node *, (size_t)count + 1);
    count = 0;
    for (Node *c = n->child; c; c = c->next)
        kids[count++] = c;
    qsort(kids, count, sizeof *kids, node_order);
    int deepest = depth + 1;
    for (uint32_t i = 0; i < count; i++) {
        int d = flame_put(a, kids[i], left, total, depth + 1, out);
        deepest = d > deepest ? d : deepest;
        left += kids[i]->ns / total;
    }
    return deepest;
}

void html_flame(Arena *a, const HtmlReport *r, Buf *out) {
    static const ArtLoc unknown = {.file = "", .name = ""};
    Node root = {.name = "the critical path", .track = -1};
    uint32_t nlocs = r->art->nlocs ? r->art->nlocs : 1;
    double *ns = ARENA_NEWN(a, double, (size_t)nlocs * CLOCK_TRACKS);
    const Artifact *art = r->art;
    for (int core = 0; core < 2 && art && r->stalls->on_path[core]; core++, art = art->peer) {
        const Price *price = core ? r->clock->peer_price : r->clock->price;
        for (uint32_t pc = 0; pc < art->ncode && price; pc++) {
            uint32_t loc = art->code_loc ? art->code_loc[pc] : 0;
            ns[(size_t)(loc < nlocs ? loc : 0) * CLOCK_TRACKS + price[pc].track] += r->stalls->on_path[core][pc];
        }
    }
    for (uint32_t i = 0; i < nlocs; i++)
        for (int t = 0; t < CLOCK_TRACKS; t++)
            if (ns[(size_t)i * CLOCK_TRACKS + t] > 0)
                flame_add(a, &root, r->art->nlocs ? &r->art->locs[i] : &unknown, t, ns[(size_t)i * CLOCK_TRACKS + t]);
    if (root.ns <= 0)
        return;
    Buf boxes = {.arena = a};
    int depth = flame_put(a, &root, 0, root.ns, 0, &boxes);
    buf_printf(out, "<h2>The path by scope and line</h2><p class=soft>Width is time on the critical path: scope, line and operation, engine. A click opens a box.</p>"
                    "<div class=flame style=\"height:%dpx\">\n%s</div>\n", depth * 22 + 2, buf_cstr(&boxes));
}
