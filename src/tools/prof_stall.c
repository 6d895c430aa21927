// SPDX-License-Identifier: Apache-2.0
// prof_stall.c — otrn prof: why a program takes as long as it does. The critical path, what engines wait for, and what
// takes the time by line, operation, scope or layer; as text and as JSON.
//
// Verdicts are made of the numbers the tables show.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/prof.h"

#define IDLE_PERCENT 1 // a track busy less than that waits for want of work

// --- rows of the critical path ---------------------------------------------------------------------

static int part_order(const void *x, const void *y) {
    const ProfPart *a = x, *b = y;
    return a->ns != b->ns ? (a->ns > b->ns ? -1 : 1) : a->track != b->track ? a->track - b->track : a->kind - b->kind;
}

// All of them, longest first, at most CLOCK_TRACKS * PATH_KINDS; they add up to the run's time.
static uint32_t prof_path(const Stalls *s, ProfPart *out) {
    uint32_t n = 0;
    for (int t = 0; t < CLOCK_TRACKS; t++)
        for (int k = 0; k < PATH_KINDS; k++)
            if (s->path_ns[t][k] > 0)
                out[n++] = (ProfPart){t, k, s->path_ns[t][k]};
    qsort(out, n, sizeof *out, part_order);
    return n;
}

int prof_bottleneck(const Prof *p) { return stall_bottleneck(&p->clock, &p->stalls); }

static double share(const Prof *p, double ns) { return p->clock.total_ns > 0 ? 100 * ns / p->clock.total_ns : 0; }

const char *prof_part_text(Arena *a, const ProfPart *part) {
    const char *track = clock_track_names[part->track];
    const char *form = part->kind == PATH_WORK   ? "%s at work"
                       : part->kind == PATH_HBM  ? "%s at HBM's bandwidth"
                       : part->kind == PATH_DMA  ? "%s at the DMA engines' rate"
                                                 : "%s: %s";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    return arena_printf(a, form, track, path_names[part->kind]);
#pragma GCC diagnostic pop
}

// --- text ------------------------------------------------------------------------------------------

// --top
static uint32_t prof_top(const Tool *t, uint32_t dflt) {
    uint64_t n = opt_num(&t->opt, OPT_TOP);
    return n ? (uint32_t)n : dflt;
}

void prof_window(Tool *t, double *from_ns, double *to_ns) {
    const char *text = t->opt.val[OPT_TRACE_WINDOW];
    char *end = NULL;
    *from_ns = 0, *to_ns = INFINITY;
    if (!*text)
        return;
    const char *colon = strchr(text, ':');
    bool ok = colon != NULL;
    if (ok && colon > text) {
        *from_ns = strtod(text, &end) * 1e3;
        ok = end == colon;
    }
    if (ok && colon[1]) {
        *to_ns = strtod(colon + 1, &end) * 1e3;
        ok = !*end;
    }
    if (!ok || !(*from_ns >= 0) || !(*to_ns > *from_ns)) {
        ctx_hint(t->ctx, "--trace-window=100:250 is from 100 to 250 us, --trace-window=:50 the first 50 us");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "prof: --trace-window wants FROM:TO in us, not '%s'", text);
    }
}

static void path_print(Tool *t, const Prof *p) {
    ProfPart parts[CLOCK_TRACKS * PATH_KINDS];
    uint32_t n = prof_path(&p->stalls, parts), shown = prof_top(t, 8);
    printf("\ncritical path                                   us  of run\n");
    double rest = 0;
    for (uint32_t i = 0; i < n; i++)
        if (i < shown)
            printf("%-38s %11.2f %6.1f%%\n", prof_part_text(t->arena, &parts[i]), parts[i].ns * 1e-3, share(p, parts[i].ns));
        else
            rest += parts[i].ns;
    if (n > shown)
        printf("… %-36u %11.2f %6.1f%%\n", n - shown, rest * 1e-3, share(p, rest));
}

// "dma in 20.1 %, vector 12.3 %": what a track stands still for, the longest first.
static const char *waits_text(Arena *a, const Prof *p, int track) {
    const double *ns = p->stalls.stall_ns[track];
    Buf out = {.arena = a};
    bool used[STALL_COUNT] = {0};
    for (int i = 0; i < 4; i++) {
        int best = -1;
        for (int s = 0; s < STALL_COUNT; s++)
            if (!used[s] && share(p, ns[s]) >= 0.05 && (best < 0 || ns[s] > ns[best]))
                best = s;
        if (best < 0)
            break;
        used[best] = true;
        buf_printf(&out, "%s%s %.1f", i ? ", " : "", stall_names[best], share(p, ns[best]));
    }
    if (share(p, p->stalls.idle_ns[track]) >= 0.05)
        buf_printf(&out, "%sidle %.1f", out.n ? ", " : "", share(p, p->stalls.idle_ns[track]));
    return buf_cstr(&out);
}

void prof_engines_print(Tool *t, const Prof *p) {
    const Clock *c = &p->clock;
    bool known = p->stalls.known;
    printf("\nengine     instructions     busy us  busy %%%s\n", known ? "  waits for, % of the run (idle: done)" : "");
    for (int e = 0; e < CLOCK_TRACKS; e++) {
        printf("%-10s %12llu %11.2f %7.1f", clock_track_names[e], (unsigned long long)c->insts[e], c->busy_ns[e] * 1e-3,
               prof_share(p, e));
        if (known)
            printf("  %s", waits_text(t->arena, p, e));
        printf("\n");
    }
}

static const char *line_text(Arena *a, const Prof *p, uint32_t line) {
    return line == STALL_NO_LINE ? "" : prof_line_text(a, &p->view.lines.at[line], 0);
}

static void waits_print(Tool *t, const Prof *p) {
    const Stalls *s = &p->stalls;
    uint32_t shown = prof_top(t, 5);
    if (!s->rows.n)
        return;
    printf("\nlongest waits                                           us  of run  for\n");
    for (uint32_t i = 0, n = 0; i < s->rows.n && n < shown; i++) {
        const StallRow *r = &s->rows.at[i];
        if (prof_share(p, r->track) < IDLE_PERCENT) // it has next to nothing to do: that it waits tells nothing
            continue;
        n++;
        const char *who = arena_printf(t->arena, "%s: %s", clock_track_names[r->track], line_text(t->arena, p, r->line));
        const char *whom = line_text(t->arena, p, r->for_line);
        printf("%-46.46s %11.2f %6.1f%%  %s%s%s\n", who, r->ns * 1e-3, share(p, r->ns), stall_names[r->why],
               *whom ? ": " : "", whom);
    }
}

static const char *const group_titles[GROUP_KINDS] = {"by line", "by operation", "by scope", "by layer"};

static void groups_print(Tool *t, const Prof *p) {
    const GroupTable *g = &p->groups;
    uint32_t shown = prof_top(t, 8);
    if (!g->at.n || p->clock.total_ns <= 0)
        return;
    printf("\n%-34s%s  engine        busy us  of run\n", group_titles[g->by],
           p->stalls.known ? "  on the path us  of run" : "");
    for (uint32_t i = 0; i < g->at.n && i < shown; i++) {
        const Group *one = &g->at.at[i];
        printf("%-34s", prof_clipped(t->arena, one->name, 34));
        if (p->stalls.known)
            printf("  %14.2f %6.1f%%", one->path_ns * 1e-3, share(p, one->path_ns));
        printf("  %-11s %9.2f %6.1f%%\n", clock_track_names[one->track], one->most_ns * 1e-3, share(p, one->most_ns));
    }
    if (g->at.n > shown)
        printf("… %u more (--top=N, --json has all)\n", g->at.n - shown);
    if (g->by >= GROUP_SCOPE && !g->named)
        printf("note: this program names no scopes; JAX writes them with lowered.as_text(debug_info=True), jax.named_scope and modules add to them\n");
}

// why
static const char *prof_spill_text(Arena *a, const Prof *p, const SpillRow *r) {
    double sbuf = p->chip.sbuf_usable_bytes * PARTITIONS;
    if (r->why == SPILL_LARGE)
        return arena_printf(a, "%s, SBUF holds %s", view_scaled(a, r->tensor_bytes, 4, "B"), view_scaled(a, sbuf, 4, "B"));
    if (r->why == SPILL_LONG)
        return arena_printf(a, "read %s us later, %s pass through SBUF in between", view_scaled(a, r->between_ns * 1e-3, 4, ""),
                            view_scaled(a, r->between_bytes, 4, "B"));
    return arena_printf(a, "it would fit: its reader is a step of its own");
}

static void spills_print(Tool *t, const Prof *p) {
    const Spills *s = &p->spills;
    uint32_t shown = prof_top(t, 4);
    if (!s->rows.n || s->bytes < 0.01 * p->clock.hbm_bytes)
        return;
    printf("\nspills: %s come back from HBM because they did not stay in SBUF\n", view_scaled(t->arena, s->bytes, 4, "B"));
    for (uint32_t i = 0; i < s->rows.n && i < shown; i++) {
        const SpillRow *r = &s->rows.at[i];
        printf("%10s  %s → %s: %s\n", view_scaled(t->arena, r->bytes, 4, "B"), line_text(t->arena, p, r->from),
               r->from == r->to ? "itself" : line_text(t->arena, p, r->to), prof_spill_text(t->arena, p, r));
    }
    if (s->rows.n > shown)
        printf("… %u more\n", s->rows.n - shown);
}

void prof_why_print(Tool *t, const Prof *p) {
    if (p->stalls.known) {
        path_print(t, p);
        waits_print(t, p);
    }
    groups_print(t, p);
    spills_print(t, p);
    printf("\n");
    if (p->clock.total_ns > 0)
        printf("bottleneck: ");
    printf("%s\n", group_verdict(t->arena, &p->clock, &p->stalls, &p->groups));
}

// --- JSON ------------------------------------------------------------------------------------------

static void place_json(const Prof *p, uint32_t line, const char *prefix) {
    static const ViewLine none = {.file = "", .name = ""};
    const ViewLine *l = line == STALL_NO_LINE ? &none : &p->view.lines.at[line];
    printf(", \"%sfile\": \"", prefix);
    json_text(l->file);
    printf("\", \"%sline\": %u, \"%sop\": \"%s\"", prefix, l->line, prefix, l->op ? hlo_op_rows[l->op].name : "");
}

static void stalls_json(const Prof *p) {
    const Stalls *s = &p->stalls;
    printf("  \"stalls\": {");
    for (int t = 0; t < CLOCK_TRACKS; t++) {
        printf("%s\n    \"", t ? "," : "");
        json_key(clock_track_names[t]);
        printf("\": {\"busy_us\": %.3f, \"idle_us\": %.3f, \"waits_us\": {", s->busy_ns[t] * 1e-3, s->idle_ns[t] * 1e-3);
        for (int i = 0, n = 0; i < STALL_COUNT; i++)
            if (s->stall_ns[t][i] > 0) {
                printf("%s\"", n++ ? ", " : "");
                json_key(stall_names[i]);
                printf("\": %.3f", s->stall_ns[t][i] * 1e-3);
            }
        printf("}}");
    }
    printf("\n  },\n");
}

static void waits_json(Tool *t, const Prof *p) {
    const Stalls *s = &p->stalls;
    uint32_t shown = prof_top(t, 100);
    printf("  \"waits\": [");
    for (uint32_t i = 0; i < s->rows.n && i < shown; i++) {
        const StallRow *r = &s->rows.at[i];
        printf("%s\n    {\"engine\": \"", i ? "," : "");
        json_key(clock_track_names[r->track]);
        printf("\", \"for\": \"");
        json_key(stall_names[r->why]);
        printf("\", \"us\": %.3f", r->ns * 1e-3);
        place_json(p, r->line, "");
        place_json(p, r->for_line, "for_");
        printf("}");
    }
    printf("\n  ],\n");
}

static void groups_json(Tool *t, const Prof *p) {
    const GroupTable *g = &p->groups;
    uint32_t shown = prof_top(t, UINT32_MAX);
    printf("  \"group\": \"%s\",\n  \"groups\": [", group_names[g->by]);
    for (uint32_t i = 0; i < g->at.n && i < shown; i++) {
        const Group *one = &g->at.at[i];
        printf("%s\n    {\"name\": \"", i ? "," : "");
        json_text(one->name);
        printf("\", \"path_us\": %.3f, \"engine\": \"", one->path_ns * 1e-3);
        json_key(clock_track_names[one->track]);
        printf("\", \"busy_us\": %.3f, \"waits_us\": %.3f, \"waited_for_us\": %.3f, \"hbm_bytes\": %.0f, \"flops\": %.0f}",
               one->most_ns * 1e-3, one->waits_ns * 1e-3, one->waited_ns * 1e-3, one->hbm_bytes, one->flops);
    }
    printf("\n  ],\n");
}

static void spills_json(Tool *t, const Prof *p) {
    uint32_t shown = prof_top(t, 100);
    printf("  \"spills\": [");
    for (uint32_t i = 0; i < p->spills.rows.n && i < shown; i++) {
        const SpillRow *r = &p->spills.rows.at[i];
        printf("%s\n    {\"bytes\": %.0f, \"why\": \"%s\", \"tensor_bytes\": %.0f, \"between_us\": %.3f, \"between_bytes\": %.0f", i ? "," : "",
               r->bytes, spill_names[r->why], r->tensor_bytes, r->between_ns * 1e-3, r->between_bytes);
        place_json(p, r->from, "");
        place_json(p, r->to, "to_");
        printf("}");
    }
    printf("\n  ],\n");
}

void prof_why_json(Tool *t, const Prof *p) {
    if (p->stalls.known) {
        ProfPart parts[CLOCK_TRACKS * PATH_KINDS];
        uint32_t n = prof_path(&p->stalls, parts);
        printf("  \"critical_path\": [");
        for (uint32_t i = 0; i < n; i++) {
            printf("%s\n    {\"engine\": \"", i ? "," : "");
            json_key(clock_track_names[parts[i].track]);
            printf("\", \"what\": \"");
            json_key(path_names[parts[i].kind]);
            printf("\", \"us\": %.3f}", parts[i].ns * 1e-3);
        }
        printf("\n  ],\n");
        stalls_json(p);
        waits_json(t, p);
    }
    groups_json(t, p);
    spills_json(t, p);
}
