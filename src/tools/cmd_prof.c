// SPDX-License-Identifier: Apache-2.0
// cmd_prof.c — otrn prof: what one run would cost on the real chip. Needs no data.
//
// The JSON form is for scripts: keys are only ever added.
#include <string.h>

#include "base/file.h"
#include "rt/price.h"
#include "tools/prof.h"

#define PLOT_COLUMNS 64

// --- a priced program ------------------------------------------------------------------------------

void prof_make(Tool *t, const char *path, const char *target, Prof *out) {
    Options opts = t->opt;
    if (target)
        opts.val[OPT_TARGET] = target, opts.from[OPT_TARGET] = "command line";
    Instance instance;
    instance_apply(t->ctx, t->arena, &opts, &instance);
    RtCompile in = {.opts = &opts, .name = path, .warn = t->warn};
    if ((in.count = tensors_are_named(t) ? 0 : t->inputs.n))
        in.types = tensors_types(t), in.values = tensors_values(t);
    in.bytes = tool_read(t, path, &in.size);
    Buf bytes = {0};
    progress_begin(t, "compiling");
    rt_compile(t->ctx, t->arena, &in, &bytes);
    progress_end(t);
    prof_price(t, path, &opts, &bytes, out);
}

// Runs the program on the --input files, for what only a run knows.
static void count_trips(Tool *t, const char *path, ClockOptions *out) {
    otrn_exe *exe = t->exe ? t->exe : tool_exe(t, path);
    ToolRun run;
    tool_execute(t, exe, false, &run);
    rt_trips(exe, t->arena, out);
}

void prof_price(Tool *t, const char *path, const Options *given, const Buf *bytes, Prof *out) {
    *out = (Prof){.path = path, .brief = !strcmp(given->val[OPT_GROUP], "none")};
    Options *o = ARENA_NEW(t->arena, Options);
    *o = *given;
    bool is_instance = instance_apply(t->ctx, t->arena, o, &out->instance);
    out->art = artifact_load(t->ctx, t->arena, path, bytes->at, bytes->n);
    // An artifact is timed for the chip, and as, it was compiled unless something else is asked for.
    if (strcmp(o->from[OPT_TARGET], "default")) {
        chipfile_load(t->ctx, t->arena, o->val[OPT_TARGET], o->val[OPT_CHIPS], &out->chip);
    } else {
        chipfile_named(t->ctx, t->arena, out->art->target, NULL, o->val[OPT_CHIPS], &out->chip);
        o->val[OPT_TARGET] = out->art->target;
    }
    rt_options_of(t->ctx, t->arena, out->art, path, false, o);
    out->how = (RtPricing){.how = {.opts = o, .chip = &out->chip, .name = path, .warn = t->warn},
                    .instance = is_instance ? &out->instance : NULL,
                    .clock = {.events = !out->brief, .stalls = !out->brief}};
    if (!strcmp(o->val[OPT_TRIPS], "run"))
        count_trips(t, path, &out->how.clock);
    progress_begin(t, "compiling");
    rt_price(t->ctx, t->arena, out->art, &out->how, &out->priced);
    progress_end(t);
    const RtPriced *p = &out->priced;
    out->art = p->art, out->chip = p->chip, out->clock = p->clock, out->cost = p->cost;
    out->assumed_trips = p->assumed_trips;
    view_make(t->arena, out->art, &out->chip, &out->clock, &out->view);
    if (!out->brief) {
        stall_make(t->arena, out->art, &out->chip, &out->clock, &out->view, &out->stalls);
        group_make(t->arena, out->art, &out->clock, &out->view, &out->stalls, group_parse(o->val[OPT_GROUP]), &out->groups);
        spill_make(t->arena, out->art, &out->chip, &out->clock, &out->view, &out->spills);
    }
    rt_traffic(t->ctx, t->arena, &out->how, p, &out->view, &out->stalls, &out->traffic);
}

double prof_share(const Prof *p, int track) {
    return p->clock.total_ns > 0 ? 100.0 * p->clock.busy_ns[track] / p->clock.total_ns : 0;
}

const char *prof_clipped(Arena *a, const char *text, int width) {
    size_t n = strlen(text), keep = (size_t)width - 1;
    if (n <= (size_t)width)
        return text;
    while (keep && ((unsigned char)text[keep] & 0xc0) == 0x80) // not inside a character
        keep--;
    return arena_printf(a, "%.*s…", (int)keep, text);
}

const char *prof_line_text(Arena *a, const ViewLine *l, int width) {
    const char *text = group_line_text(a, l);
    return width ? prof_clipped(a, text, width) : text;
}

static uint32_t most_instructions(const Artifact *art) { // of a core
    return art->peer && art->peer->ncode > art->ncode ? art->peer->ncode : art->ncode;
}

void prof_warn_count(const char *path, const Artifact *art, const ChipFile *chip) {
    uint32_t n = most_instructions(art);
    if (n > chip->instructions_max)
        fprintf(stderr,
                "otrn: %s: warning: the program has %u instructions, %s takes %.0f: it will not run there; smaller batches or shapes, "
                "loops instead of unrolled code, or more devices\n",
                path, n, chip->name, chip->instructions_max);
}

void prof_warn_compiled(Ctx *ctx, Arena *a, const Options *o, const char *path, const Buf *bytes) {
    Artifact *art = artifact_load(ctx, a, path, bytes->at, bytes->n);
    ChipFile chip;
    if (strcmp(o->from[OPT_TARGET], "default"))
        chipfile_load(ctx, a, o->val[OPT_TARGET], o->val[OPT_CHIPS], &chip);
    else
        chipfile_named(ctx, a, art->target, NULL, o->val[OPT_CHIPS], &chip);
    prof_warn_count(path, art, &chip);
}

// --- JSON ------------------------------------------------------------------------------------------

// A JSON string's inside; names are ours or the user's.
void json_text(const char *s) {
    for (; *s; s++)
        if ((unsigned char)*s < 0x20)
            printf("\\u%04x", *s);
        else
            printf(*s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
}

// "dma in" as a key: dma_in.
void json_key(const char *s) {
    for (; *s; s++)
        putchar(*s == ' ' ? '_' : *s);
}

static void json_views(const Prof *p) {
    const ViewRoof *r = &p->view.roof;
    printf("  \"roof\": {\"compute_us\": %.3f, \"memory_us\": %.3f, \"intensity\": %.4f, \"ridge\": %.4f, "
           "\"attainable_flops\": %.0f, \"achieved_flops\": %.0f},\n  \"memory\": {",
           r->compute_ns * 1e-3, r->memory_ns * 1e-3, r->hbm_bytes > 0 ? r->flops / r->hbm_bytes : 0, r->ridge,
           r->attainable, r->achieved);
    for (int m = 0; m < VIEW_MEMORIES; m++) {
        const ViewMemory *v = &p->view.memory[m];
        printf("%s\n    \"%s\": {\"capacity_bytes\": %.0f, \"peak_bytes\": %.0f, \"peak_us\": %.3f}", m ? "," : "",
               view_memory_names[m], v->capacity_bytes, v->peak_bytes, v->peak_ns * 1e-3);
    }
    printf("\n  },\n  \"lines\": [");
    for (uint32_t i = 0; i < p->view.lines.n; i++) {
        const ViewLine *l = &p->view.lines.at[i];
        printf("%s\n    {\"file\": \"", i ? "," : "");
        json_text(l->file);
        printf("\", \"line\": %u, \"name\": \"", l->line);
        json_text(l->name);
        printf("\", \"op\": \"%s\", \"engine\": \"", l->op ? hlo_op_rows[l->op].name : "");
        json_key(clock_track_names[l->track]);
        printf("\", \"busy_us\": %.3f, \"hbm_bytes\": %.0f}", l->most_ns * 1e-3, l->hbm_bytes);
    }
    printf("\n  ],\n");
}

void prof_json(Tool *t, const Prof *p) {
    const Clock *c = &p->clock;
    printf("{\n  \"program\": \"");
    json_text(p->art->name);
    printf("\",\n  \"target\": \"");
    json_text(p->chip.name);
    printf("\",\n  \"total_us\": %.3f,\n  \"dispatch_us\": %.3f,\n  \"step_us\": %.3f,\n  \"bottleneck\": \"", c->total_ns * 1e-3,
           p->chip.dispatch_ns * 1e-3, (c->total_ns + p->chip.dispatch_ns) * 1e-3);
    json_key(clock_track_names[prof_bottleneck(p)]);
    printf("\",\n");
    printf("  \"instructions\": %u,\n  \"instructions_max\": %.0f,\n", most_instructions(p->art), p->chip.instructions_max);
    printf("  \"flops\": %.0f,\n  \"hbm_bytes\": %.0f,\n  \"hbm_peak_bytes\": %.0f,\n", c->flops, c->hbm_bytes,
           view_hbm_planned(p->art));
    prof_cost_json(t, p);
    prof_comm_json(t, p);
    if (!p->brief) {
        json_views(p);
        prof_why_json(t, p);
    }
    if (opt_on(&t->opt, OPT_HINTS))
        prof_hints_json(p);
    printf("  \"engines\": {");
    for (int e = 0; e < CLOCK_TRACKS; e++) {
        printf("%s\n    \"", e ? "," : "");
        json_key(clock_track_names[e]);
        printf("\": {\"busy_us\": %.3f, \"busy_percent\": %.2f, \"instructions\": %llu}", c->busy_ns[e] * 1e-3,
               prof_share(p, e), (unsigned long long)c->insts[e]);
    }
    printf("\n  }\n}");
}

// --- text ------------------------------------------------------------------------------------------

static void amount_print(Arena *a, const char *label, double amount, const char *unit, double seconds,
                         const char *rate) {
    printf("%-14s %s", label, view_scaled(a, amount, 4, unit));
    if (seconds > 0 && amount > 0)
        printf(" (%s)", view_scaled(a, amount / seconds, 4, rate));
    printf("\n");
}

static void roof_print(Arena *a, const Prof *p) {
    const ViewRoof *r = &p->view.roof;
    if (r->flops <= 0 && r->hbm_bytes <= 0)
        return;
    bool memory = r->memory_ns > r->compute_ns;
    double least = memory ? r->memory_ns : r->compute_ns, share = 100 * least / p->clock.total_ns;
    printf("roofline       ");
    if (r->flops <= 0) {
        printf("no matrix products: HBM alone allows %.2f us, the run is at %.0f %% of that roof\n", least * 1e-3,
               share);
        return;
    }
    if (r->hbm_bytes > 0)
        printf("%.4g FLOP/B, roofs meet at %.4g: ", r->flops / r->hbm_bytes, r->ridge);
    printf("%s roof allows %s, achieved %s (%.0f %%)\n", memory ? "the HBM" : "the tensor engine's",
           view_scaled(a, r->attainable, 4, "FLOP/s"), view_scaled(a, r->achieved, 4, "FLOP/s"), share);
}

// A memory's bins as a row of blocks; each column shows the most of its bins, the full block the peak.
static void plot_print(const ViewMemory *m) {
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    for (int c = 0; c < PLOT_COLUMNS; c++) {
        double most = 0;
        for (int b = c * VIEW_BINS / PLOT_COLUMNS; b < (c + 1) * VIEW_BINS / PLOT_COLUMNS; b++)
            most = m->bins[b] > most ? m->bins[b] : most;
        fputs(blocks[most <= 0 ? 0 : (int)(most / m->peak_bytes * 7.999) + 1], stdout);
    }
}

static void memory_print(Arena *a, const Prof *p) {
    if (!p->view.has_memory)
        return;
    printf("\nmemory      peak        of capacity   over the run\n");
    for (int i = 0; i < VIEW_MEMORIES; i++) {
        const ViewMemory *m = &p->view.memory[i];
        printf("%-10s  %-10s  %6.1f %%      |", view_memory_names[i], view_scaled(a, m->peak_bytes, 4, "B"),
               100 * m->peak_bytes / m->capacity_bytes);
        plot_print(m);
        printf("|\n");
    }
}

static void table_print(Tool *t, const Prof *p) {
    const Clock *c = &p->clock;
    double seconds = c->total_ns * 1e-9;
    printf("program        %s\ntarget         %s\n", prof_name(p), p->chip.name);
    if (p->instance.name)
        printf("instance       %s: %u chip%s, %.0f cores\n", p->instance.name, p->instance.chips,
               p->instance.chips == 1 ? "" : "s", p->instance.chips * p->chip.cores_per_chip);
    if (artifact_is_shared(p->art))
        printf("cores          2 of a logical core: busy is their mean, amounts are sums; SBUF, PSUM and trace are of the first\n");
    else if (p->art->peer)
        printf("cores          2 of a logical core; one does all of it, the other would not make it quicker\n");
    printf("modelled time  %.2f us\n", c->total_ns * 1e-3);
    printf("dispatch       %.2f us more for each execution, by the host: %.2f us a step of one\n", p->chip.dispatch_ns * 1e-3,
           (c->total_ns + p->chip.dispatch_ns) * 1e-3);
    amount_print(t->arena, "matmul", c->flops, "FLOP", seconds, "FLOP/s");
    amount_print(t->arena, "HBM traffic", c->hbm_bytes, "B", seconds, "B/s");
    amount_print(t->arena, "HBM planned", view_hbm_planned(p->art), "B", 0, "");
    prof_cost_print(t, p);
    roof_print(t->arena, p);
    prof_engines_print(t, p);
    prof_comm_print(t, p);
    memory_print(t->arena, p);
    if (!p->brief)
        prof_why_print(t, p);
    if (opt_on(&t->opt, OPT_HINTS))
        prof_hints_print(t, p);
    prof_loops_print(t->arena, p);
    if (c->approximate)
        printf("note: a very long loop without a steady state was cut short; its last iteration was multiplied\n");
}

// What needs a timeline is not asked for together with --group=none.
static void check_brief(Tool *t) {
    static const int needs[] = {OPT_DIFF, OPT_HINTS, OPT_TRACE, OPT_REPORT};
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        const char *value = t->opt.val[needs[i]];
        if (!*value || !strcmp(value, "off"))
            continue;
        ctx_hint(t->ctx, "leave out --group=none, or --%s", opt_rows[needs[i]].name);
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "prof: --group=none has totals alone, --%s shows more", opt_rows[needs[i]].name);
    }
}

int cmd_prof(Tool *t) {
    if (!strcmp(t->opt.val[OPT_GROUP], "none"))
        check_brief(t);
    if (opt_on(&t->opt, OPT_DIFF))
        return prof_diff(t);
    if (t->words.n > 1) {
        ctx_hint(t->ctx, "--diff compares two");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "prof: one argument too many: '%s'", t->words.at[1]);
    }
    if (strchr(t->opt.val[OPT_INSTANCE], ','))
        return prof_instances(t);
    prof_max_comm(t);
    Prof p;
    prof_make(t, t->words.at[0], NULL, &p);
    prof_warn_count(p.path, p.art, &p.chip);
    if (opt_on(&t->opt, OPT_HINTS))
        prof_hints_make(t, &p);
    if (*t->opt.val[OPT_TRACE]) {
        Buf text = {.arena = t->arena};
        double from, to;
        prof_window(t, &from, &to);
        clock_trace_window(p.art, &p.chip, &p.clock, from, to, &text);
        clock_trace_write(t->ctx, t->arena, t->opt.val[OPT_TRACE], &text);
    }
    if (*t->opt.val[OPT_REPORT])
        prof_report(t, &p, t->opt.val[OPT_REPORT]);
    if (opt_on(&t->opt, OPT_JSON))
        prof_json(t, &p), printf("\n");
    else
        table_print(t, &p);
    return prof_comm_status(t, &p);
}
