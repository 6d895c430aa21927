// SPDX-License-Identifier: Apache-2.0
// traffic.c — collectives of a priced program, added up.
#include "clock/traffic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/coll.h"
#include "mach/price.h"

#define COLLECTIVES (CLOCK_TRACKS - 1)
#define WARNED 4 // rows that a warning names
#define FREE_GB_S 1e9

ChipFile traffic_free(const ChipFile *chip) {
    ChipFile c = *chip;
    c.link_bw = c.link_step_bw = c.link_mesh_bw = c.link_chip_bw = FREE_GB_S;
    c.link_total = c.joined_total = FREE_GB_S;
    c.network_bw = c.network_step_bw = c.network_mesh_bw = FREE_GB_S;
    c.collective_start_ns = c.collective_chip_ns = c.collective_ns = c.collective_step_ns = c.collective_hop_ns = c.network_hop_ns = c.collective_dma = 0;
    return c;
}

// --- rows ----------------------------------------------------------------------------------------

// A group's shape, from its first row; pairs of a permutation go by how far they reach.
TrafficRow traffic_row(const Kern *k, const Price *p, uint32_t devices) {
    Groups g = {0};
    coll_groups((HloOpcode)k->op, k->attrs, &g);
    bool pairs = k->op == HLO_COLLECTIVE_PERMUTE;
    TrafficRow r = {.op = k->op, .ranks = g.cols ? g.cols : devices, .groups = g.rows ? g.rows : 1, .stride = g.cols ? 0 : 1,
                    .way = p->way, .reach = p->reach};
    if (pairs) {
        r.ranks = 2;
        r.stride = g.rows && g.cols == 2 ? (uint32_t)llabs(g.ids[1] - g.ids[0]) : 0;
        return r;
    }
    int64_t step = g.cols > 1 ? g.ids[1] - g.ids[0] : 1;
    bool even = g.cols && step > 0;
    for (uint32_t i = 1; even && i < g.cols; i++)
        even = g.ids[i] - g.ids[i - 1] == step;
    r.stride = even ? (uint32_t)step : r.stride;
    return r;
}

static TrafficRow *find(Arena *a, Traffic *t, TrafficRow like) {
    for (uint32_t i = 0; i < t->rows.n; i++) {
        TrafficRow *r = &t->rows.at[i];
        if (r->op == like.op && r->ranks == like.ranks && r->groups == like.groups && r->stride == like.stride && r->way == like.way &&
            r->reach == like.reach)
            return r;
    }
    VEC_PUSH(a, &t->rows, like);
    return &t->rows.at[t->rows.n - 1];
}

typedef struct LineTime { // what a row's collectives of one line have of the path; of the last line looked at
    uint32_t row, line;
    double ns;
} LineTime;

static int line_order(const void *x, const void *y) {
    const LineTime *a = x, *b = y;
    return a->row != b->row ? (a->row < b->row ? -1 : 1) : a->line < b->line ? -1 : a->line > b->line;
}

static void lines_take(Traffic *t, LineTime *at, uint32_t n) {
    qsort(at, n, sizeof *at, line_order);
    for (uint32_t i = 0, end; i < n; i = end) {
        double ns = 0;
        for (end = i; end < n && !line_order(&at[end], &at[i]); end++)
            ns += at[end].ns;
        TrafficRow *r = &t->rows.at[at[i].row];
        if (ns > r->line_ns)
            r->line_ns = ns, r->line = at[i].line;
    }
}

typedef VEC(LineTime) LineTimes;

static void add_core(Arena *a, const Artifact *art, uint32_t devices, const Price *price, const View *view, const double *on_path, int core,
                     Traffic *t, LineTimes *lines) {
    for (uint32_t pc = 0; pc < art->ncode; pc++) {
        if (price[pc].track != COLLECTIVES)
            continue;
        double times = view->times_of[core][pc], busy = (double)price[pc].busy * 1e-3 * times;
        TrafficRow *r = find(a, t, traffic_row(&art->kerns[art->code[pc].imm], &price[pc], devices));
        r->count += times;
        r->bytes += price[pc].link_bytes * times;
        r->busy_ns += busy;
        double path = on_path ? fmin(on_path[pc], busy) : busy; // it may also stand on the path because others hold it up
        r->exposed_ns += path;
        VEC_PUSH(a, lines, ((LineTime){(uint32_t)(r - t->rows.at), view->line_of[core][pc], path}));
    }
}

static int most_exposed(const void *x, const void *y) {
    const TrafficRow *a = x, *b = y;
    if (a->exposed_ns != b->exposed_ns)
        return a->exposed_ns > b->exposed_ns ? -1 : 1;
    return a->busy_ns != b->busy_ns ? (a->busy_ns > b->busy_ns ? -1 : 1) : a->op < b->op ? -1 : a->op > b->op;
}

void traffic_make(Arena *a, const Artifact *art, const Clock *clock, double free_ns, const View *view, const Stalls *stalls, Traffic *out) {
    *out = (Traffic){.total_ns = clock->total_ns, .bytes = clock->link_bytes};
    bool known = stalls && stalls->known;
    uint32_t devices = art->partitions ? art->partitions : 1;
    LineTimes lines = {0};
    add_core(a, art, devices, clock->price, view, known ? stalls->on_path[0] : NULL, 0, out, &lines);
    if (clock->peer_flow)
        add_core(a, art->peer, devices, clock->peer_price, view, known ? stalls->on_path[1] : NULL, 1, out, &lines);
    if (lines.n)
        lines_take(out, lines.at, lines.n);
    out->busy_ns = clock->comm_ns;
    out->exposed_ns = fmin(fmax(clock->total_ns - free_ns, 0), out->busy_ns);
    double path = 0, busy = 0;
    for (uint32_t i = 0; i < out->rows.n; i++)
        path += out->rows.at[i].exposed_ns, busy += out->rows.at[i].busy_ns;
    double more = out->exposed_ns - path; // what the path does not tell is of those that are busy beside it: no row is exposed for longer than it takes
    for (uint32_t i = 0; i < out->rows.n; i++) {
        TrafficRow *r = &out->rows.at[i];
        double part = more < 0 ? r->exposed_ns / path : busy > path ? (r->busy_ns - r->exposed_ns) / (busy - path) : 0;
        double now = r->exposed_ns + part * more;
        r->line_ns *= r->exposed_ns > 0 ? now / r->exposed_ns : 0;
        r->exposed_ns = now;
    }
    if (out->rows.n)
        qsort(out->rows.at, out->rows.n, sizeof *out->rows.at, most_exposed);
}

// --- what is told --------------------------------------------------------------------------------

// Of a run that a user measured no more than all of it.
static double share(const Traffic *t, double ns) { return t->total_ns > 0 ? fmin(ns / t->total_ns, 1) : 0; }

double traffic_share(const Traffic *t) { return share(t, t->busy_ns); }
double traffic_exposed(const Traffic *t) { return share(t, t->exposed_ns); }

const char *traffic_group(Arena *a, const TrafficRow *r) {
    if (!r->stride)
        return arena_printf(a, "%u devices", r->ranks);
    return arena_printf(a, r->stride == 1 ? "%u devices" : "%u devices, %u apart", r->ranks, r->stride);
}

const char *traffic_way(Arena *a, const TrafficRow *r) {
    return r->way == FABRIC_CHIP ? "chip" : arena_printf(a, "%s, %s", fabric_way_names[r->way], link_place_names[r->reach]);
}

static const char *place(Arena *a, const ViewLine *l) { // "train.py:12"
    const char *slash = strrchr(l->file, '/');
    return l->line ? arena_printf(a, "%s:%u", slash ? slash + 1 : l->file, l->line) : *l->name ? l->name : "an unknown line";
}

const char *traffic_warning(Arena *a, const Traffic *t, const View *view, double most) {
    if (!(traffic_share(t) > most))
        return NULL;
    Buf b = {.arena = a};
    buf_printf(&b, "collectives take %.1f %% of the step, %.1f %% are not hidden", 100 * traffic_share(t), 100 * traffic_exposed(t));
    for (uint32_t i = 0; i < t->rows.n && i < WARNED; i++) {
        const TrafficRow *r = &t->rows.at[i];
        buf_printf(&b, "%s%s over %s at %s (%.1f %%)", i ? ", " : ": ", hlo_op_rows[r->op].name, traffic_group(a, r),
                   place(a, &view->lines.at[r->line]), 100 * share(t, r->busy_ns));
    }
    return buf_cstr(&b);
}
