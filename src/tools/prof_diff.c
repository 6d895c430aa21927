// SPDX-License-Identifier: Apache-2.0
// prof_diff.c — otrn prof --diff: two priced programs side by side, and what makes the difference.
//
// Lines are the same when file and line are; a place in the compared file itself (a kernel, a program without
// places of its own) counts as the same file on both sides.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/prof.h"

#define LINES_SHOWN 8

typedef struct LineDiff {
    const ViewLine *a, *b; // NULL: only on the other side
    double a_ns, b_ns;     // on the engine where they differ most
    int track;
} LineDiff;

static double change(double a, double b) { return a > 0 ? 100 * (b - a) / a : 0; }

static void row_print(const char *label, const char *a, const char *b, double from, double to) {
    printf("%-14s %16s %16s", label, a, b);
    if (from > 0 && from != to)
        printf(" %+8.1f %%", change(from, to));
    printf("\n");
}

static void number_row(Arena *m, const char *label, double a, double b, const char *unit) {
    row_print(label, view_scaled(m, a, 4, unit), view_scaled(m, b, 4, unit), a, b);
}

static void us_row(Arena *m, const char *label, double a, double b) {
    row_print(label, arena_printf(m, "%.2f us", a * 1e-3), arena_printf(m, "%.2f us", b * 1e-3), a, b);
}

static double dma_ns(const Prof *p) { return p->clock.busy_ns[ENG_COUNT] + p->clock.busy_ns[ENG_COUNT + 1]; }

static void table_print(Arena *m, const Prof *a, const Prof *b) {
    const Clock *x = &a->clock, *y = &b->clock;
    printf("%-14s %16.16s %16.16s   change\n", "", "A", "B");
    row_print("program", arena_printf(m, "%.16s", prof_name(a)), arena_printf(m, "%.16s", prof_name(b)), 0, 0);
    row_print("target", a->chip.name, b->chip.name, 0, 0);
    us_row(m, "modelled time", x->total_ns, y->total_ns);
    number_row(m, "matmul", x->flops, y->flops, "FLOP");
    number_row(m, "achieved", a->view.roof.achieved, b->view.roof.achieved, "FLOP/s");
    number_row(m, "attainable", a->view.roof.attainable, b->view.roof.attainable, "FLOP/s");
    number_row(m, "HBM traffic", x->hbm_bytes, y->hbm_bytes, "B");
    number_row(m, "HBM planned", view_hbm_planned(a->art), view_hbm_planned(b->art), "B");
    for (int i = VIEW_SBUF; i < VIEW_MEMORIES; i++)
        number_row(m, arena_printf(m, "%s peak", view_memory_names[i]), a->view.memory[i].peak_bytes,
                   b->view.memory[i].peak_bytes, "B");
    us_row(m, "DMA", dma_ns(a), dma_ns(b));
    double usd[] = {prof_usd(a), prof_usd(b)};
    bool both = usd[0] > 0 && usd[1] > 0;
    row_print("USD, 1e6 runs", usd[0] > 0 ? arena_printf(m, "%.4g", usd[0] * 1e6) : "not known",
              usd[1] > 0 ? arena_printf(m, "%.4g", usd[1] * 1e6) : "not known", both ? usd[0] : 0, both ? usd[1] : 0);
    printf("price of A     %s\nprice of B     %s\n", cost_text(m, &a->cost), cost_text(m, &b->cost));
    printf("\nengine              A busy us    of run      B busy us    of run\n");
    for (int e = 0; e < CLOCK_TRACKS; e++)
        printf("%-14s %14.2f %7.1f %% %14.2f %7.1f %%\n", clock_track_names[e], x->busy_ns[e] * 1e-3, prof_share(a, e),
               y->busy_ns[e] * 1e-3, prof_share(b, e));
}

// --- lines -----------------------------------------------------------------------------------------

static const char *file_of(const Prof *p, const ViewLine *l) { return strcmp(l->file, p->path) ? l->file : ""; }

static int same_order(const Prof *p, const ViewLine *x, const Prof *q, const ViewLine *y) {
    int d = strcmp(file_of(p, x), file_of(q, y));
    if (d)
        return d;
    return x->line != y->line ? (x->line < y->line ? -1 : 1) : x->line ? 0 : strcmp(x->name, y->name);
}

// A program's lines by place, so that two lists can be walked side by side.
typedef struct Placed {
    const Prof *p;
    const ViewLine *l;
} Placed;
static int placed_order(const void *x, const void *y) {
    const Placed *a = x, *b = y;
    return same_order(a->p, a->l, b->p, b->l);
}
static Placed *placed(Arena *m, const Prof *p) {
    Placed *out = ARENA_NEWN(m, Placed, (size_t)p->view.lines.n + 1);
    for (uint32_t i = 0; i < p->view.lines.n; i++)
        out[i] = (Placed){p, &p->view.lines.at[i]};
    qsort(out, p->view.lines.n, sizeof *out, placed_order);
    return out;
}

static LineDiff line_diff(const ViewLine *a, const ViewLine *b) {
    LineDiff d = {a, b, 0, 0, 0};
    for (int t = 0; t < CLOCK_TRACKS; t++) {
        double x = a ? a->busy_ns[t] : 0, y = b ? b->busy_ns[t] : 0;
        if (fabs(x - y) > fabs(d.a_ns - d.b_ns))
            d.a_ns = x, d.b_ns = y, d.track = t;
    }
    return d;
}

static int diff_order(const void *x, const void *y) {
    const LineDiff *a = x, *b = y;
    double p = fabs(a->a_ns - a->b_ns), q = fabs(b->a_ns - b->b_ns);
    return p > q ? -1 : p < q;
}

static uint32_t lines_diff(Arena *m, const Prof *a, const Prof *b, LineDiff **out) {
    Placed *x = placed(m, a), *y = placed(m, b);
    uint32_t nx = a->view.lines.n, ny = b->view.lines.n, n = 0;
    *out = ARENA_NEWN(m, LineDiff, (size_t)nx + ny + 1);
    for (uint32_t i = 0, k = 0; i < nx || k < ny;) {
        int d = i == nx ? 1 : k == ny ? -1 : same_order(a, x[i].l, b, y[k].l);
        (*out)[n++] = line_diff(d <= 0 ? x[i].l : NULL, d >= 0 ? y[k].l : NULL);
        i += d <= 0;
        k += d >= 0;
    }
    qsort(*out, n, sizeof **out, diff_order);
    return n;
}

static void lines_print(Arena *m, const LineDiff *d, uint32_t n) {
    if (!n || d[0].a_ns == d[0].b_ns)
        return;
    printf("\nlines that changed most                   engine             A us       B us\n");
    for (uint32_t i = 0; i < n && i < LINES_SHOWN && d[i].a_ns != d[i].b_ns; i++)
        printf("%-41s %-12s %10.2f %10.2f\n", prof_line_text(m, d[i].a ? d[i].a : d[i].b, 41),
               clock_track_names[d[i].track], d[i].a_ns * 1e-3, d[i].b_ns * 1e-3);
}

// --- the critical path -----------------------------------------------------------------------------

typedef struct PartDiff {
    int track, kind;
    double a_ns, b_ns;
} PartDiff;

static int part_order(const void *x, const void *y) {
    const PartDiff *a = x, *b = y;
    double p = fabs(a->a_ns - a->b_ns), q = fabs(b->a_ns - b->b_ns);
    return p > q ? -1 : p < q;
}

// Pieces of the critical paths side by side: their differences add up to that of the run's times.
static uint32_t path_diff(const Prof *a, const Prof *b, PartDiff *out) {
    uint32_t n = 0;
    for (int t = 0; t < CLOCK_TRACKS; t++)
        for (int k = 0; k < PATH_KINDS; k++) {
            double x = a->stalls.path_ns[t][k], y = b->stalls.path_ns[t][k];
            if (fabs(x - y) >= 0.5)
                out[n++] = (PartDiff){t, k, x, y};
        }
    qsort(out, n, sizeof *out, part_order);
    return n;
}

static void path_print(Arena *m, const PartDiff *d, uint32_t n) {
    if (!n)
        return;
    printf("\ncritical path                                            A us       B us     change\n");
    double a = 0, b = 0;
    for (uint32_t i = 0; i < n; i++)
        if (i < LINES_SHOWN)
            printf("%-50s %10.2f %10.2f %+10.2f\n", prof_part_text(m, &(ProfPart){d[i].track, d[i].kind, 0}), d[i].a_ns * 1e-3,
                   d[i].b_ns * 1e-3, (d[i].b_ns - d[i].a_ns) * 1e-3);
        else
            a += d[i].a_ns, b += d[i].b_ns;
    if (n > LINES_SHOWN)
        printf("… %-48u %10.2f %10.2f %+10.2f\n", n - LINES_SHOWN, a * 1e-3, b * 1e-3, (b - a) * 1e-3);
}

// --- the verdict -----------------------------------------------------------------------------------

// What of the path makes the difference: the pieces that change most, until they tell most of it.
static void verdict_print(Arena *m, const Prof *a, const Prof *b, const PartDiff *d, uint32_t n) {
    double x = a->clock.total_ns, y = b->clock.total_ns, by = change(x, y), told = 0;
    printf("\n");
    if (x <= 0 || fabs(by) < 0.05) {
        printf("verdict: A and B take the same time%s\n",
               a->clock.hbm_bytes == b->clock.hbm_bytes ? "" : ", though they move different amounts of memory");
        return;
    }
    printf("verdict: B is %.1f %% %s than A (%.2f us %s)", fabs(by), by < 0 ? "faster" : "slower", fabs(y - x) * 1e-3,
           by < 0 ? "less" : "more");
    for (uint32_t i = 0; i < n && i < 4 && fabs(y - x - told) > 0.2 * fabs(y - x); i++) {
        double more = d[i].b_ns - d[i].a_ns;
        printf("%s%s %.2f us %s", i ? ", " : ": on the critical path ", prof_part_text(m, &(ProfPart){d[i].track, d[i].kind, 0}),
               fabs(more) * 1e-3, more < 0 ? "less" : "more");
        told += more;
    }
    printf("\n");
}

int prof_diff(Tool *t) {
    const char *path = t->words.at[0], *other = t->words.n > 1 ? t->words.at[1] : path;
    const char *target = strcmp(t->opt.from[OPT_TARGET], "default") ? t->opt.val[OPT_TARGET] : NULL;
    const char *comma = target ? strchr(target, ',') : NULL;
    if (t->words.n < 2 && !comma) {
        ctx_hint(t->ctx, "usage: otrn prof --diff A B, or otrn prof --diff A --target=trn1,trn2");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "prof --diff: with what is '%s' to be compared?", path);
    }
    const char *left = comma ? arena_strndup(t->arena, target, (size_t)(comma - target)) : target;
    Prof *a = ARENA_NEW(t->arena, Prof), *b = ARENA_NEW(t->arena, Prof);
    prof_make(t, path, left, a);
    prof_make(t, other, comma ? comma + 1 : target, b);
    LineDiff *lines;
    uint32_t n = lines_diff(t->arena, a, b, &lines);
    table_print(t->arena, a, b);
    PartDiff parts[CLOCK_TRACKS * PATH_KINDS];
    uint32_t nparts = a->stalls.known && b->stalls.known ? path_diff(a, b, parts) : 0;
    path_print(t->arena, parts, nparts);
    lines_print(t->arena, lines, n);
    verdict_print(t->arena, a, b, parts, nparts);
    return 0;
}
