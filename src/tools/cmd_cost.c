// SPDX-License-Identifier: Apache-2.0
// cmd_cost.c — otrn cost: a program over devices in dollars, of a run of days.
//
// Of a run's time some is lost: checkpoints hold it up, machines fail and what was done since the last checkpoint is done
// again. The rules and the words of the JSON form are those of predictions from a configuration (python/opentrn/_predict/money.py).
#include <math.h>
#include <string.h>

#include "base/elem.h"
#include "tools/prof.h"

#define DAYS_MOST 36525.0
#define LEAST 0.01      // share of its time that a run trains, below which it does not
#define RESTART_S 600.0 // until a run is up again behind a failure, from the cache

// --- a run of days ------------------------------------------------------------------------------------

static double above_zero(Tool *t, int opt, const char *what) {
    double v = predict_number(t, opt, what);
    if (!(v > 0))
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "%s: more than 0 %s are needed", opt_rows[opt].name, what);
    return v;
}

// Seconds of work between checkpoints that lose least, where failures come after `mean` seconds in the mean: what is done again and the
// pauses weigh the same there.
static double interval(double mean, double pause) {
    double low = 0, high = mean;
    for (int i = 0; i < 100; i++) {
        double at = (low + high) / 2;
        *(1 - elem_exp(-(at + pause) / mean) > at / mean ? &low : &high) = at;
    }
    return high;
}

// Failures come at any time, while a run starts again too (Daly, 2006): that many seconds go by for each interval of work.
static void goodput(Tool *t, uint32_t machines, Run *r) {
    double mean = above_zero(t, OPT_MTBF, "hours") * 3600 / machines, pause = above_zero(t, OPT_CHECKPOINT_S, "seconds");
    r->every_s = interval(mean, pause);
    r->goodput = r->every_s / (mean * elem_exp(RESTART_S / mean) * elem_expm1((r->every_s + pause) / mean));
    if (!(r->goodput > LEAST)) {
        ctx_hint(t->ctx, "--mtbf-hours, --checkpoint-s");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "%u machines fail so often that checkpoints and restarts take all the time", machines);
    }
}

bool run_make(Tool *t, const Prof *p, const Told *o, Run *r) {
    if (!*t->opt.val[OPT_DAYS])
        return false;
    *r = (Run){.days = above_zero(t, OPT_DAYS, "days")};
    double seconds = r->days * 86400, starts = above_zero(t, OPT_STARTS, "starts");
    if (r->days > DAYS_MOST || starts != floor(starts)) {
        ctx_hint(t->ctx, r->days > DAYS_MOST ? "--days=14; a century is the most" : "--starts=3");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, r->days > DAYS_MOST ? "days: a run of %s days" : "starts: `%s` is no whole number",
                 t->opt.val[r->days > DAYS_MOST ? OPT_DAYS : OPT_STARTS]);
    }
    goodput(t, p->cost.machines, r);
    r->usd = o->usd_per_hour / 3600 * seconds;
    r->tokens = o->tokens / o->step_s * r->goodput * fmax(seconds - o->compile_s, 0);
    r->saved_usd = (starts - 1) * o->compile_s * o->usd_per_hour / 3600;
    if (!*t->opt.val[OPT_EPOCH])
        return true;
    double epoch = above_zero(t, OPT_EPOCH, "tokens");
    if (!(r->tokens > 0)) {
        ctx_hint(t->ctx, "--tokens=N, of one step of all devices");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "epoch-tokens: how many tokens has a step?");
    }
    r->epochs = r->tokens / epoch;
    r->epoch_hours = 24 * r->days / r->epochs;
    r->epoch_usd = r->usd / r->epochs;
    return true;
}

void answer_run(Tool *t, Answer *o, const Run *r) {
    Buf line = {.arena = t->arena};
    buf_printf(&line, "%.6g days", r->days);
    if (r->tokens > 0)
        buf_printf(&line, ", %sG tokens", view_number(t->arena, r->tokens * 1e-9, 4));
    if (r->usd > 0)
        buf_printf(&line, ": %s USD", view_number(t->arena, r->usd, 6));
    if (r->saved_usd > 0)
        buf_printf(&line, ", the cache saves %s", view_number(t->arena, r->saved_usd, 4));
    buf_printf(&line, "; goodput %.1f %%, a checkpoint every %.0f min", 100 * r->goodput, r->every_s / 60);
    put_u8(&line, 0);
    answer_add(t, o, "run", (const char *)line.at);
    if (r->epochs > 0)
        answer_add(t, o, "epoch", arena_printf(t->arena, "%s h, %s USD; the run has %s", view_number(t->arena, r->epoch_hours, 4),
                   view_number(t->arena, r->epoch_usd, 4), view_number(t->arena, r->epochs, 3)));
}

void run_json(const Run *r) {
    predict_key("days", r->days, true);
    predict_key("goodput", r->goodput, true);
    predict_key("checkpoint_every_s", r->every_s, true);
    predict_key("tokens", r->tokens, r->tokens > 0);
    predict_key("usd", r->usd, r->usd > 0);
    predict_key("usd_saved_by_cache", r->saved_usd, r->usd > 0);
    if (r->epochs > 0) {
        predict_key("epochs", r->epochs, true);
        predict_key("hours_per_epoch", r->epoch_hours, true);
        predict_key("usd_per_epoch", r->epoch_usd, r->usd > 0);
    }
}

// --- cost ---------------------------------------------------------------------------------------------

double usd_per_million(const Told *o) { return o->usd_per_hour / 3600 * o->step_s / o->tokens * 1e6; }

static void cost_json(Tool *t, const Prof *p, const Told *o, const Run *r, uint32_t nodes) {
    printf("{\n  \"instance\": \"%s\",\n  \"nodes\": %u,\n", p->instance.name, nodes);
    predict_key("usd_per_hour", o->usd_per_hour, true);
    predict_key("usd_per_step", o->usd_per_hour / 3600 * o->step_s, true);
    predict_key("usd_per_1m_tokens", usd_per_million(o), o->tokens > 0);
    predict_key("expected_error", o->error, o->error >= 0);
    predict_key("comm_share", o->comm, true);
    prof_comm_limit_json(t, p);
    run_json(r);
    printf("  \"compile_s\": %.3f,\n  \"price_basis\": \"", o->compile_s);
    json_text(p->cost.basis);
    printf("\"\n}\n");
}

static Answer cost_answer(Tool *t, const Prof *p, const Told *o, const Run *run, uint32_t nodes) {
    Answer out = {.title = predict_title(t, p, nodes), .about = "what a run costs, by opentrn"};
    const char *step = arena_printf(t->arena, "%s USD a step", view_number(t->arena, o->usd_per_hour / 3600 * o->step_s, 4));
    if (o->tokens > 0)
        step = arena_printf(t->arena, "%s, %s USD per 1M tokens while it trains, %s with what is lost", step, view_number(t->arena, usd_per_million(o), 4),
                            view_number(t->arena, run->usd / run->tokens * 1e6, 4));
    answer_add(t, &out, "cost", step);
    answer_add(t, &out, "price", cost_text(t->arena, &p->cost));
    answer_run(t, &out, run);
    return out;
}

int cmd_cost(Tool *t) {
    uint32_t nodes = predict_nodes(t);
    Prof p;
    Told o;
    Run run;
    measured_check(t, &t->opt.val[OPT_INSTANCE], 1);
    predict_make(t, t->words.at[0], &p, &o);
    predict_check(t, &p, nodes);
    if (!(o.usd_per_hour > 0)) {
        ctx_hint(t->ctx, "--price=USD/h of one machine");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "no price of %s is published", p.instance.name);
    }
    if (!run_make(t, &p, &o, &run)) {
        ctx_hint(t->ctx, "--days=14");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "cost: how long is the run?");
    }
    Answer answer = cost_answer(t, &p, &o, &run, nodes);
    if (*t->opt.val[OPT_REPORT]) {
        Caught caught = json_begin(t);
        cost_json(t, &p, &o, &run, nodes);
        answer_report(t, &answer, &p, &o, json_end(t, caught));
    }
    if (opt_on(&t->opt, OPT_JSON))
        cost_json(t, &p, &o, &run, nodes);
    for (uint32_t i = 0; i < answer.rows.n && !opt_on(&t->opt, OPT_JSON); i++)
        answer_print(&answer.rows.at[i]);
    return prof_comm_asked(t, &p);
}
