// SPDX-License-Identifier: Apache-2.0
// explain.c — what a compiled program became: `otrn compile --explain` and `otrn check PROG`.
//
// Per source line: its instructions, the engine they keep busy, the share of the run; what stayed on GpSimd and
// why; the tensors that fill HBM; a verdict, which is also the exit status.
#include "tools/explain.h"

#include <stdlib.h>
#include <string.h>

#include "rt/rt.h"
#include "tile/why.h"

#define NAMES_SHOWN 4
#define LIVE_SHOWN 8

const VerdictRow verdicts[VERDICT_COUNT] = {
    [VERDICT_SUPPORTED] = {0, "supported"},
    [VERDICT_SLOW] = {3, "runs, but much of it on GpSimd"},
    [VERDICT_TOO_LARGE] = {4, "does not fit"},
    [VERDICT_UNSUPPORTED] = {5, "not supported"},
};

// --- what a line became ----------------------------------------------------------------------------

typedef struct Count {
    const char *name;
    uint32_t n;
} Count;

static int count_order(const void *a, const void *b) {
    const Count *x = a, *y = b;
    return x->n != y->n ? (x->n > y->n ? -1 : 1) : strcmp(x->name, y->name);
}

static const char *inst_name(const Artifact *art, const IsaInst *in) {
    int cost = isa_rows[in->op].cost;
    if ((cost == COST_KERNEL || cost == COST_COLLECTIVE) && (uint32_t)in->imm < art->nkerns)
        return hlo_op_rows[art->kerns[in->imm].op].name;
    return isa_rows[in->op].name;
}

// "64 matmul, 64 ldweights, 8 dma" of a line's instructions.
static const char *became(Arena *a, const Artifact *art, const IsaInst *const *insts, uint32_t n) {
    Count counts[ISA_OP_COUNT + 64];
    uint32_t have = 0;
    for (uint32_t i = 0; i < n; i++) {
        const char *name = inst_name(art, insts[i]);
        uint32_t k = 0;
        while (k < have && strcmp(counts[k].name, name))
            k++;
        if (k == have && have < sizeof counts / sizeof *counts)
            counts[have++] = (Count){name, 0};
        if (k < have)
            counts[k].n++;
    }
    qsort(counts, have, sizeof *counts, count_order);
    Buf text = {.arena = a};
    for (uint32_t k = 0; k < have && k < NAMES_SHOWN; k++)
        buf_printf(&text, "%s%u %s", k ? ", " : "", counts[k].n, counts[k].name);
    if (have > NAMES_SHOWN)
        buf_puts(&text, ", ..."); // ASCII: the column may cut it
    return buf_cstr(&text);
}

// Instructions by line, of both cores: those of line i are insts[first[i]] … insts[first[i + 1] - 1].
typedef struct ByLine {
    uint32_t *first;
    const IsaInst **insts;
} ByLine;

static ByLine by_line(Arena *a, const Prof *p) {
    uint32_t n = p->view.lines.n, all = p->art->ncode + (p->art->peer ? p->art->peer->ncode : 0);
    ByLine b = {ARENA_NEWN(a, uint32_t, (size_t)n + 2), ARENA_NEWN(a, const IsaInst *, (size_t)all + 1)};
    int core = 0;
    for (const Artifact *art = p->art; art; art = art->peer, core++)
        for (uint32_t pc = 0; pc < art->ncode; pc++)
            if (p->view.line_of[core][pc] < n)
                b.first[p->view.line_of[core][pc] + 1]++;
    for (uint32_t i = 0; i < n; i++)
        b.first[i + 1] += b.first[i];
    uint32_t *at = arena_dup(a, b.first, ((size_t)n + 1) * sizeof *at);
    core = 0;
    for (const Artifact *art = p->art; art; art = art->peer, core++)
        for (uint32_t pc = 0; pc < art->ncode; pc++)
            if (p->view.line_of[core][pc] < n)
                b.insts[at[p->view.line_of[core][pc]]++] = &art->code[pc];
    return b;
}

static void lines_print(Arena *a, const Prof *p, const ByLine *by, uint32_t most) {
    printf("line                                      became                                        engine       of run\n");
    uint32_t n = p->view.lines.n;
    for (uint32_t i = 0; i < n && (!most || i < most); i++) {
        const ViewLine *l = &p->view.lines.at[i];
        if (!l->line && !*l->name && !*l->file)
            continue;
        const char *text = became(a, p->art, by->insts + by->first[i], by->first[i + 1] - by->first[i]);
        printf("%-41s %-45.45s %-11s %6.1f%%\n", prof_line_text(a, l, 41), text, clock_track_names[l->track],
               p->clock.total_ns > 0 ? 100 * l->most_ns / p->clock.total_ns : 0);
    }
    if (most && n > most)
        printf("… %u more lines (`otrn compile --explain` shows all)\n", n - most);
}

// --- GpSimd ----------------------------------------------------------------------------------------

static int gpsimd_order(const void *a, const void *b) {
    const ViewLine *x = *(const ViewLine *const *)a, *y = *(const ViewLine *const *)b;
    double p = x->busy_ns[ENG_GPSIMD], q = y->busy_ns[ENG_GPSIMD];
    return p > q ? -1 : p < q;
}

// Every line with kernels, the longest first, with the reason of each kind of kernel on it.
static void gpsimd_print(Arena *a, const Prof *p, const ByLine *by, uint32_t most) {
    const ViewLine **lines = ARENA_NEWN(a, const ViewLine *, (size_t)p->view.lines.n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->view.lines.n; i++) {
        bool kernel = false;
        for (uint32_t k = by->first[i]; k < by->first[i + 1] && !kernel; k++)
            kernel = isa_rows[by->insts[k]->op].cost == COST_KERNEL;
        if (kernel)
            lines[n++] = &p->view.lines.at[i];
    }
    double share = prof_share(p, ENG_GPSIMD);
    printf("\non GpSimd: %u line%s, %.1f %% of the run\n", n, n == 1 ? "" : "s", share);
    qsort(lines, n, sizeof *lines, gpsimd_order);
    for (uint32_t i = 0; i < n && (!most || i < most); i++) {
        uint32_t at = (uint32_t)(lines[i] - p->view.lines.at);
        const char *last = NULL;
        for (uint32_t k = by->first[at]; k < by->first[at + 1]; k++) {
            const IsaInst *in = by->insts[k];
            if (isa_rows[in->op].cost != COST_KERNEL || (uint32_t)in->imm >= p->art->nkerns)
                continue;
            char room[WHY_BYTES];
            const char *why = tile_why_kernel(&p->art->kerns[in->imm], room);
            if (last && !strcmp(last, why))
                continue;
            last = arena_strndup(a, why, strlen(why));
            const char *name = hlo_op_rows[p->art->kerns[in->imm].op].name;
            printf("  %5.1f%%  %s%s%s: %s\n", 100 * lines[i]->busy_ns[ENG_GPSIMD] / p->clock.total_ns,
                   prof_line_text(a, lines[i], 0), lines[i]->op && !strcmp(hlo_op_rows[lines[i]->op].name, name) ? "" : " → ",
                   lines[i]->op && !strcmp(hlo_op_rows[lines[i]->op].name, name) ? "" : name, why);
        }
    }
    if (most && n > most)
        printf("  … %u more\n", n - most);
}

static void live_print(Arena *a, const Prof *p, bool all) {
    double planned = view_hbm_planned(p->art);
    printf("\npeak HBM: %s of %s; live there\n", prof_scaled(a, planned, "B"),
           prof_scaled(a, p->chip.hbm_bytes_per_core, "B"));
    for (uint32_t i = 0; i < p->art->nlive && (all || i < LIVE_SHOWN); i++) {
        const ArtLive *live = &p->art->live[i];
        const ArtLoc *loc = live->loc < p->art->nlocs ? &p->art->locs[live->loc] : &p->art->locs[0];
        ViewLine line = {.file = loc->file ? loc->file : "", .name = loc->name ? loc->name : "", .line = loc->line, .op = loc->op};
        bool known = line.line || *line.name || *line.file;
        printf("  %10s  %s\n", prof_scaled(a, (double)live->bytes, "B"), known ? prof_line_text(a, &line, 0) : "(not named)");
    }
    if (!all && p->art->nlive > LIVE_SHOWN)
        printf("  … %u more\n", p->art->nlive - LIVE_SHOWN);
}

Verdict explain_print(Tool *t, const Prof *p, uint32_t lines) {
    ByLine by = by_line(t->arena, p);
    double share = prof_share(p, ENG_GPSIMD), limit = (double)opt_num(&t->opt, OPT_GPSIMD_LIMIT);
    lines_print(t->arena, p, &by, lines);
    gpsimd_print(t->arena, p, &by, lines);
    live_print(t->arena, p, !lines);
    Verdict v = share > limit ? VERDICT_SLOW : VERDICT_SUPPORTED;
    printf("\nverdict: %s", verdicts[v].text);
    printf(" (%.1f %% on GpSimd, limit %.0f %%); %.2f us a run on %s\n", share, limit, p->clock.total_ns * 1e-3, p->chip.name);
    return v;
}

// --- programs that did not compile -------------------------------------------------------------------

Verdict explain_failure(const otrn_error *err) {
    Verdict v = err->code == OTRN_CAPACITY ? VERDICT_TOO_LARGE : VERDICT_UNSUPPORTED;
    char text[2400];
    otrn_error_print(err, text, sizeof text);
    printf("%s%sverdict: %s\n", text, text[0] && text[strlen(text) - 1] == '\n' ? "" : "\n", verdicts[v].text);
    return v;
}
