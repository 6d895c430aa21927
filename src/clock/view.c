// SPDX-License-Identifier: Apache-2.0
// view.c — source lines and roofs of a priced program.
//
// An instruction's part of its track is its price times how often it runs; a track's busy time, which the
// clock knows exactly, is shared out in these parts. So lines add up to the table of engines. Engines work
// side by side: the shares of all lines together may pass the whole.
#include "clock/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/elem.h"
#include "clock/flow.h"
#include "mach/price.h"

// How often each instruction runs.
static double *run_counts(Arena *a, const Artifact *art, const Flow *f) {
    double *times = ARENA_NEWN(a, double, (size_t)art->ncode + 1);
    double *region = ARENA_NEWN(a, double, (size_t)f->regions.n + 1);
    for (uint32_t r = 0; r < f->regions.n; r++) { // outer before inner
        const FlowRegion *g = &f->regions.at[r];
        region[r] = (double)g->trips * (g->parent == NO_REGION ? 1 : region[g->parent]);
    }
    for (uint32_t i = 0; i < f->items.n; i++) {
        const FlowItem *item = &f->items.at[i];
        if ((item->kind == ITEM_INST || item->kind == ITEM_FENCE) && item->pc < art->ncode)
            times[item->pc] = item->region == NO_REGION ? 1 : region[item->region];
    }
    return times;
}

// How long it occupies its track, once.
static double weight(const ChipFile *chip, const Price *p, bool is_dma) {
    if (!is_dma)
        return (double)p->busy;
    double parts = fmin(p->dma_parts ? p->dma_parts : 1, chip->dma_engine_partitions);
    return fmax((double)p->dma * parts, (double)p->hbm);
}

// --- lines ---------------------------------------------------------------------------------------

static int text_order(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : ""); }

static int loc_order(const void *x, const void *y) {
    const ArtLoc *a = *(const ArtLoc *const *)x, *b = *(const ArtLoc *const *)y;
    int d = text_order(a->file, b->file);
    if (d)
        return d;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a->line ? 0 : text_order(a->name, b->name);
}

// Locations of one line share a number; a location without a line is told by its name.
static uint32_t *line_numbers(Arena *a, const Artifact *art, View *out) {
    static const ArtLoc unknown = {0};
    uint32_t n = art->nlocs ? art->nlocs : 1;
    const ArtLoc *locs = art->nlocs ? art->locs : &unknown, **order = ARENA_NEWN(a, const ArtLoc *, n);
    uint32_t *number = ARENA_NEWN(a, uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        order[i] = &locs[i];
    qsort(order, n, sizeof *order, loc_order);
    for (uint32_t i = 0; i < n; i++) {
        const ArtLoc *l = order[i];
        if (!i || loc_order(&order[i - 1], &order[i]))
            VEC_PUSH(a, &out->lines, (ViewLine){.file = l->file ? l->file : "", .line = l->line,
                                                .name = l->name ? l->name : ""});
        number[l - locs] = out->lines.n - 1;
    }
    return number;
}

static int line_order(const void *x, const void *y) {
    const ViewLine *a = x, *b = y;
    if (a->most_ns != b->most_ns)
        return a->most_ns > b->most_ns ? -1 : 1;
    int d = text_order(a->file, b->file);
    return d ? d : a->line < b->line ? -1 : a->line > b->line;
}

typedef struct OpTime { // what an operation of a line takes on the line's track
    uint32_t line;
    uint16_t op;
    double ns;
} OpTime;

static int op_order(const void *x, const void *y) {
    const OpTime *a = x, *b = y;
    return a->line != b->line ? (a->line < b->line ? -1 : 1) : (int)a->op - (int)b->op;
}

// Names each line by what takes its time: all its instructions of one operation together.
static void lines_name(Arena *a, const Artifact *art, const Clock *clock, const uint32_t *number, View *v) {
    uint32_t n = art->nlocs;
    OpTime *ops = ARENA_NEWN(a, OpTime, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++)
        ops[i] = (OpTime){number[i], art->locs[i].op, 0};
    const Price *price = clock->price;
    for (int core = 0; n && art && price; art = art->peer, price = clock->peer_price, core++)
        for (uint32_t pc = 0; pc < art->ncode; pc++) {
            uint32_t loc = art->code_loc ? art->code_loc[pc] : 0;
            loc = loc < n ? loc : 0;
            if (price[pc].track == v->lines.at[number[loc]].track)
                ops[loc].ns += v->busy_of[core][pc];
        }
    qsort(ops, n, sizeof *ops, op_order);
    for (uint32_t i = 0, end; i < n; i = end) {
        ViewLine *l = &v->lines.at[ops[i].line];
        double best = -1;
        for (end = i; end < n && ops[end].line == ops[i].line;) {
            uint16_t op = ops[end].op;
            double ns = 0;
            for (; end < n && ops[end].line == ops[i].line && ops[end].op == op; end++)
                ns += ops[end].ns;
            if (ns > best)
                best = ns, l->op = op;
        }
    }
}

static void lines_finish(Arena *a, const Artifact *art, const Clock *clock, const uint32_t *number, View *v) {
    uint32_t n = 0, *place = ARENA_NEWN(a, uint32_t, (size_t)v->lines.n + 1);
    for (uint32_t i = 0; i < v->lines.n; i++) {
        ViewLine *l = &v->lines.at[i];
        for (int t = 0; t < CLOCK_TRACKS; t++)
            if (l->busy_ns[t] > l->most_ns)
                l->most_ns = l->busy_ns[t], l->track = t;
        l->number = i;
    }
    lines_name(a, art, clock, number, v);
    for (uint32_t i = 0; i < v->lines.n; i++) {
        ViewLine *l = &v->lines.at[i];
        if (l->insts > 0)
            v->lines.at[n++] = *l;
    }
    v->lines.n = n;
    if (n)
        qsort(v->lines.at, n, sizeof *v->lines.at, line_order);
    for (uint32_t i = 0; i < n; i++)
        place[v->lines.at[i].number] = i;
    for (int core = 0; art; art = art->peer, core++) {
        v->line_of[core] = ARENA_NEWN(a, uint32_t, (size_t)art->ncode + 1);
        for (uint32_t pc = 0; pc < art->ncode; pc++) {
            uint32_t loc = art->code_loc ? art->code_loc[pc] : 0;
            v->line_of[core][pc] = place[number[loc < art->nlocs ? loc : 0]];
        }
    }
}

// Between steps: HBM that is no argument, result or constant.
static bool is_scratch(uint64_t a) { return addr_space(a) == SPACE_HBM && addr_seg(a) == SEG_SCRATCH; }

static void spill_add(const IsaInst *in, double bytes, ViewLine *l) {
    bool both = addr_space(in->src) == SPACE_HBM && addr_space(in->dst) == SPACE_HBM;
    bytes /= both ? 2 : 1;
    l->spill_out += is_scratch(in->dst) ? bytes : 0;
    l->spill_in += is_scratch(in->src) ? bytes : 0;
}

// The lines' parts of one core's program; `all` gathers the tracks.
static void lines_add(const Artifact *art, const ChipFile *chip, const Price *price, const double *times,
                      const uint32_t *number, double *all, double *busy_of, View *out) {
    for (uint32_t pc = 0; pc < art->ncode; pc++) {
        const Price *p = &price[pc];
        int cost = isa_rows[art->code[pc].op].cost;
        uint32_t loc = art->code_loc ? art->code_loc[pc] : 0;
        loc = loc < art->nlocs ? loc : 0;
        ViewLine *l = &out->lines.at[number[loc]];
        double busy = weight(chip, p, cost == COST_DMA) * times[pc];
        all[p->track] += busy;
        busy_of[pc] = busy;
        l->busy_ns[p->track] += busy;
        l->hbm_bytes += p->hbm_bytes * times[pc];
        if (cost == COST_DMA)
            spill_add(&art->code[pc], p->hbm_bytes * times[pc], l);
        l->flops += p->flops * times[pc];
        l->insts += times[pc];
    }
}

static void lines_make(Arena *a, const Artifact *art, const ChipFile *chip, const Clock *clock, const double *times,
                       const double *peer_times, View *out) {
    uint32_t *number = line_numbers(a, art, out);
    double all[CLOCK_TRACKS] = {0};
    out->busy_of[0] = ARENA_NEWN(a, double, (size_t)art->ncode + 1);
    lines_add(art, chip, clock->price, times, number, all, out->busy_of[0], out);
    if (art->peer)
        out->busy_of[1] = ARENA_NEWN(a, double, (size_t)art->peer->ncode + 1);
    if (peer_times) {
        lines_add(art->peer, chip, clock->peer_price, peer_times, number, all, out->busy_of[1], out);
    }
    double part[CLOCK_TRACKS]; // of the engine's time, where two cores share or work overlaps
    for (int t = 0; t < CLOCK_TRACKS; t++)
        part[t] = all[t] > 0 ? clock->busy_ns[t] / all[t] : 0;
    for (uint32_t i = 0; i < out->lines.n; i++)
        for (int t = 0; t < CLOCK_TRACKS; t++)
            out->lines.at[i].busy_ns[t] *= part[t];
    for (uint32_t pc = 0; pc < art->ncode; pc++)
        out->busy_of[0][pc] *= part[clock->price[pc].track];
    for (uint32_t pc = 0; peer_times && pc < art->peer->ncode; pc++)
        out->busy_of[1][pc] *= part[clock->peer_price[pc].track];
    lines_finish(a, art, clock, number, out);
}

// --- roofs ---------------------------------------------------------------------------------------

static void roof_add(const Artifact *art, const ChipFile *chip, const Price *price, const double *times, ViewRoof *r) {
    double rate = 2.0 * ISA_PE_ROWS * ISA_PE_COLS * chip->pe_ghz; // FLOP/ns of one pass
    for (uint32_t pc = 0; pc < art->ncode; pc++)
        if (isa_rows[art->code[pc].op].cost == COST_MATMUL) {
            double flops = price[pc].flops * times[pc], depth = price_depth(&art->code[pc]);
            r->flops += flops;
            r->compute_ns += flops * price_passes(chip, art->code[pc].stype) / depth / rate;
        }
}

// Two cores have twice the arrays and, together, the HBM bandwidth they share.
static void roof_make(const Artifact *art, const ChipFile *chip, const Clock *clock, const double *times,
                      const double *peer_times, ViewRoof *r) {
    double cores = art->peer ? 2 : 1, bandwidth = chip->hbm_bw_core * (art->peer ? 2 * chip->hbm_shared : 1);
    roof_add(art, chip, clock->price, times, r);
    if (peer_times)
        roof_add(art->peer, chip, clock->peer_price, peer_times, r);
    r->compute_ns /= cores;
    r->hbm_bytes = clock->hbm_bytes;
    r->memory_ns = clock->hbm_bytes / bandwidth;
    double least = fmax(r->compute_ns, r->memory_ns);
    r->attainable = least > 0 ? r->flops / least * 1e9 : 0;
    r->achieved = clock->total_ns > 0 ? r->flops / clock->total_ns * 1e9 : 0;
    r->ridge = r->compute_ns > 0 ? r->flops / r->compute_ns / bandwidth : 0;
}

const char *const view_memory_names[VIEW_MEMORIES] = {"HBM", "SBUF", "PSUM"};

void view_make(Arena *a, const Artifact *art, const ChipFile *chip, const Clock *clock, View *out) {
    *out = (View){0};
    double *times = run_counts(a, art, clock->flow);
    double *peer_times = clock->peer_flow ? run_counts(a, art->peer, clock->peer_flow) : NULL;
    out->times_of[0] = times, out->times_of[1] = peer_times;
    lines_make(a, art, chip, clock, times, peer_times, out);
    roof_make(art, chip, clock, times, peer_times, &out->roof);
    out->has_memory = clock->events.n > 0;
    if (out->has_memory)
        view_occupy(a, art, chip, clock, out);
}

const char *view_scaled(Arena *a, double v, int digits, const char *unit) {
    static const char prefixes[] = " kMGTPE";
    double most = 1000 - 0.5 * elem_pow(10, 3 - digits); // it would be shown as 1000
    int p = 0;
    for (; v >= most && prefixes[p + 1]; p++)
        v /= 1000;
    return arena_printf(a, "%.*g %.*s%s", digits, v, p > 0, &prefixes[p], unit);
}

const char *view_number(Arena *a, double v, int digits) {
    if (!(v >= 1000 - 0.5 * elem_pow(10, 3 - digits) && v < 1e18)) // a small one without an exponent: as many places as it takes
        return v > 0 && v < 1e-4 ? arena_printf(a, "%.*f", digits - 1 - (int)floor(elem_log(v) / elem_log(10)), v) : arena_printf(a, "%.*g", digits, v);
    char *text = arena_printf(a, "%.0f", v);
    size_t n = strlen(text), commas = (n - 1) / 3;
    char *out = ARENA_NEWN(a, char, n + commas + 1), *to = out;
    for (size_t i = 0; i <= n; i++) {
        if (i && i < n && (n - i) % 3 == 0)
            *to++ = ',';
        *to++ = text[i];
    }
    return out;
}

const char *view_seconds(Arena *a, double s) {
    double scale = s >= 0.1 || !(s > 0) ? 1 : s >= 1e-3 ? 1e3 : 1e6;
    return arena_printf(a, "%s %s", view_number(a, s * scale, 4), scale > 1e3 ? "us" : scale > 1 ? "ms" : "s");
}
