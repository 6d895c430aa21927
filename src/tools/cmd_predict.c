// SPDX-License-Identifier: Apache-2.0
// cmd_predict.c — otrn predict: a step of a program over devices, on so many machines. Needs no data.
//
// The program is the whole step and says how it lies over devices; what is priced is one of them. Models from their
// configuration, whose layers are repeated, are `opentrn predict CONFIG.json` of the Python package.
// The JSON form is for scripts: keys are only ever added, and are those of predictions from a configuration.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/now.h"
#include "mach/errors.h"
#include "tools/prof.h"

double predict_number(Tool *t, int opt, const char *what) {
    const char *text = t->opt.val[opt];
    char *end;
    double n = strtod(text, &end);
    if (!*text || *end || !(n >= 0 && n < 1e15))
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "%s: `%s` is no number of %s", opt_rows[opt].name, text, what);
    return n;
}

// --- the program and the machines it was written for --------------------------------------------------

uint32_t predict_nodes(Tool *t) {
    char *end;
    long n = strtol(t->opt.val[OPT_NODES], &end, 10);
    if (*end || n < 1 || n > 1000000) {
        ctx_hint(t->ctx, "--nodes=1 to 1000000");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "nodes: `%s` is no number of machines", t->opt.val[OPT_NODES]);
    }
    return (uint32_t)n;
}

void predict_check(Tool *t, const Prof *p, uint32_t nodes) {
    uint32_t cores = (uint32_t)(p->instance.chips * p->chip.cores_per_chip), have = cores / p->cost.cores_per_device * nodes;
    uint32_t devices = p->cost.devices;
    if (devices == have || (nodes == 1 && devices > 1 && devices < have)) // a part of one machine is paid in part
        return;
    if (devices == 1) {
        ctx_hint(t->ctx, "shard its arguments over a mesh of %u devices (jax.jit with in_shardings), or predict from a model's "
                 "configuration: opentrn predict CONFIG.json", have);
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "'%s' is a program of one device, without a mesh; %u of %s have %u", p->path, nodes,
                 p->instance.name, have);
    }
    uint32_t each = cores / p->cost.cores_per_device;
    ctx_hint(t->ctx, devices % each ? "a mesh of %u devices" : "--nodes=%u", devices % each ? have : devices / each);
    ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "'%s' is a program of %u devices; %u of %s have %u", p->path, devices, nodes, p->instance.name,
             have);
}

// --- what is told -------------------------------------------------------------------------------------

static Told tell(Tool *t, const Prof *p, double compile_s) {
    Told o = {.step_s = (p->clock.total_ns + p->chip.dispatch_ns) * 1e-9, .tokens = prof_tokens(t), .compile_s = compile_s};
    o.samples = predict_number(t, OPT_SAMPLES, "samples");
    o.usd_per_hour = p->cost.usd_per_hour;
    o.mfu = cost_utilisation(&p->cost, p->clock.flops, o.step_s);
    o.peak_bytes = view_hbm_planned(p->art);
    o.hbm_bytes = p->chip.hbm_bytes_per_core * p->cost.cores_per_device;
    o.error = errors_expected(t->ctx, t->arena, t->opt.val[OPT_CHIPS], p->instance.chip, "", p->cost.machines, &o.error_rows);
    return o;
}

void predict_key(const char *key, double v, bool known) {
    if (known && isfinite(v)) // of a program that does nothing a rate is none
        printf("  \"%s\": %.9g,\n", key, v);
    else
        printf("  \"%s\": null,\n", key);
}

static void json_print(Tool *t, const Prof *p, const Told *o, const Run *run, uint32_t nodes) {
    printf("{\n  \"program\": \"");
    json_text(prof_name(p));
    printf("\",\n  \"instance\": \"%s\",\n  \"nodes\": %u,\n  \"devices\": %u,\n", p->instance.name, nodes, p->cost.devices);
    predict_key("step_s", o->step_s, true);
    predict_key("tokens_per_s", o->tokens / o->step_s, o->tokens > 0);
    predict_key("samples_per_s", o->samples / o->step_s, o->samples > 0);
    predict_key("usd_per_hour", o->usd_per_hour, o->usd_per_hour > 0);
    predict_key("usd_per_1m_tokens", o->usd_per_hour / 3600 * o->step_s / o->tokens * 1e6, o->usd_per_hour > 0 && o->tokens > 0);
    printf("  \"price_basis\": \"");
    json_text(p->cost.basis);
    printf("\",\n");
    predict_key("mfu", o->mfu, true);
    predict_key("comm_share", o->comm, true);
    predict_key("exposed_comm_share", o->exposed, true);
    prof_comm_json(t, p);
    printf("  \"bubble_share\": 0,\n  \"hbm_peak_bytes\": %.0f,\n  \"hbm_bytes\": %.0f,\n  \"fits\": %s,\n", o->peak_bytes, o->hbm_bytes,
           o->peak_bytes <= o->hbm_bytes ? "true" : "false");
    predict_key("expected_error", o->error, o->error >= 0);
    printf("  \"expected_error_rows\": [%s],\n", o->error_rows);
    if (o->measured)
        printf("  \"measured\": true,\n");
    if (o->by_roofs)
        printf("  \"operations\": {\"products\": %.9g, \"attention\": %.9g, \"between\": %.9g},\n  \"host_s\": %.9g,\n", o->products_s, o->attention_s, o->between_s, o->host_s);
    if (run)
        run_json(run);
    printf("  \"compile_s\": %.3f\n}\n", o->compile_s);
}

const char *predict_title(Tool *t, const Prof *p, uint32_t nodes) {
    return arena_printf(t->arena, "%s on %u x %s (%u devices)", prof_name(p), nodes, p->instance.name, p->cost.devices);
}

static const char *const collectives = "collectives";

static Answer answer_make(Tool *t, const Prof *p, const Told *o, const Run *run, uint32_t nodes) {
    Arena *a = t->arena;
    Answer out = {.title = predict_title(t, p, nodes), .about = o->measured ? "a step of all devices, measured" : "a step of all devices, predicted by opentrn"};
    const char *price = cost_text(a, &p->cost), *error = o->measured ? "measured" : "expected error not known";
    if (!o->measured && o->error >= 0)
        error = arena_printf(a, "expected error %.0f %%", 100 * o->error);
    answer_add(t, &out, "step", arena_printf(a, "%s, %s", view_seconds(a, o->step_s), error));
    if (o->tokens > 0)
        answer_add(t, &out, "throughput", arena_printf(a, "%s tokens/s", view_number(a, o->tokens / o->step_s, 4)));
    if (o->samples > 0)
        answer_add(t, &out, "throughput", arena_printf(a, "%s samples/s", view_number(a, o->samples / o->step_s, 4)));
    answer_add(t, &out, "utilisation", arena_printf(a, "%.1f %% of the bf16 peak", 100 * o->mfu));
    bool each = o->usd_per_hour > 0 && o->tokens > 0;
    answer_add(t, &out, "cost", each ? arena_printf(a, "%s USD per 1M tokens: %s", view_number(a, usd_per_million(o), 4), price) : price);
    const char *comm = prof_comm_text(t, p);
    if (comm)
        answer_add(t, &out, collectives, comm);
    answer_add(t, &out, "memory", arena_printf(a, "%s of %s a device: %s", view_scaled(a, o->peak_bytes, 4, "B"), view_scaled(a, o->hbm_bytes, 4, "B"),
               o->peak_bytes <= o->hbm_bytes ? "fits" : "does not fit"));
    answer_add(t, &out, "compiling", arena_printf(a, "%.1f s on this host, once", o->compile_s));
    if (run)
        answer_run(t, &out, run);
    return out;
}

static void text_print(Tool *t, const Prof *p, const Told *o, const Answer *answer) {
    Arena *a = t->arena;
    printf("%s\n", answer->title);
    for (uint32_t i = 0; i < answer->rows.n; i++) {
        if (answer->rows.at[i].label == collectives)
            prof_comm_print(t, p);
        else
            answer_print(&answer->rows.at[i]);
        if (!i && o->by_roofs)
            printf("by roofs       %s products + %s attention + %s between + %s exposed collectives + %s host\n", view_seconds(a, o->products_s),
                   view_seconds(a, o->attention_s), view_seconds(a, o->between_s), view_seconds(a, p->traffic.exposed_ns * 1e-9), view_seconds(a, o->host_s));
    }
    prof_loops_print(t->arena, p);
}
void predict_make(Tool *t, const char *path, Prof *p, Told *out) {
    if (!*t->opt.val[OPT_INSTANCE]) {
        ctx_hint(t->ctx, "--instance=trn2.48xlarge --nodes=4; `otrn info instances` lists them");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "predict: which machines?");
    }
    if (strchr(t->opt.val[OPT_INSTANCE], ',')) {
        ctx_hint(t->ctx, "otrn bakeoff %s --instance=%s", path, t->opt.val[OPT_INSTANCE]);
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "one instance is needed; bakeoff compares several");
    }
    size_t n = strlen(path);
    if (n > 5 && !strcmp(path + n - 5, ".json")) {
        ctx_hint(t->ctx, "opentrn predict, cost or bakeoff %s, of the Python package, writes a model's layers", path);
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "predict: '%s' is a configuration, not a program", path);
    }
    double begin = now_seconds();
    prof_max_comm(t);
    if (!roof_make(t, path, p, out)) {
        prof_make(t, path, NULL, p);
        *out = tell(t, p, now_seconds() - begin);
    }
    measured_apply(t, t->opt.val[OPT_INSTANCE], out);
    p->traffic.total_ns = out->step_s * 1e9; // collectives take what they are predicted to, of the step that is told: with dispatch, or measured
    out->comm = traffic_share(&p->traffic), out->exposed = traffic_exposed(&p->traffic);
}

int cmd_predict(Tool *t) {
    uint32_t nodes = predict_nodes(t);
    Prof p;
    Told told;
    measured_check(t, &t->opt.val[OPT_INSTANCE], 1);
    predict_make(t, t->words.at[0], &p, &told);
    predict_check(t, &p, nodes);
    Run run;
    const Run *asked = run_make(t, &p, &told, &run) ? &run : NULL;
    Answer answer = answer_make(t, &p, &told, asked, nodes);
    if (*t->opt.val[OPT_REPORT]) {
        Caught caught = json_begin(t);
        json_print(t, &p, &told, asked, nodes);
        answer_report(t, &answer, &p, &told, json_end(t, caught));
    }
    if (opt_on(&t->opt, OPT_JSON))
        json_print(t, &p, &told, asked, nodes);
    else
        text_print(t, &p, &told, &answer);
    return prof_comm_status(t, &p);
}
