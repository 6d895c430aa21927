// SPDX-License-Identifier: Apache-2.0
// measured.c — --measured=NAME:98000tok/s,…: what the user measured on an instance, in the place of what is predicted for it.
//
// The same words as `opentrn predict` has (python/opentrn/_predict/money.py).
#include <stdlib.h>
#include <string.h>

#include "tools/prof.h"

enum { TOKENS_S, SAMPLES_S, MS, S, UNITS };
static const char *const units[UNITS] = {"tok/s", "samples/s", "ms", "s"};

typedef struct Measured {
    const char *name;
    double value;
    int unit;
} Measured;

static Measured parse(Tool *t, const char *text) {
    const char *colon = strchr(text, ':');
    Measured m = {.name = colon ? arena_strndup(t->arena, text, (size_t)(colon - text)) : "", .unit = UNITS};
    char *end = "";
    m.value = colon ? strtod(colon + 1, &end) : 0;
    for (int i = 0; i < UNITS; i++)
        m.unit = colon && end > colon + 1 && !strcmp(end, units[i]) ? i : m.unit;
    if (!*m.name || m.unit == UNITS || !(m.value > 0 && m.value < 1e15)) {
        ctx_hint(t->ctx, "--measured=p5.48xlarge:98000tok/s, :12samples/s, :340ms or :0.34s");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "measured: `%s` is no instance with what a step of it takes", text);
    }
    return m;
}

static double step_of(Tool *t, const Measured *m, double tokens, double samples) {
    double work = m->unit == TOKENS_S ? tokens : samples;
    if (m->unit >= MS)
        return m->value * (m->unit == MS ? 1e-3 : 1);
    if (!(work > 0)) {
        ctx_hint(t->ctx, m->unit == TOKENS_S ? "--tokens=N, of one step of all devices, or :340ms" : "--samples=N, of one step of all devices, or :340ms");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "measured: how many %s has a step?", m->unit == TOKENS_S ? "tokens" : "samples");
    }
    return work / m->value;
}

// The next of the list; false: none is left.
static bool next(Tool *t, const char **at, Measured *out) {
    size_t n = strcspn(*at, ",");
    if (!n && !**at)
        return false;
    *out = parse(t, arena_strndup(t->arena, *at, n));
    *at += n + ((*at)[n] == ',');
    return true;
}

void measured_check(Tool *t, const char *const *names, uint32_t n) {
    Measured m;
    for (const char *at = t->opt.val[OPT_MEASURED]; next(t, &at, &m);) {
        bool asked = false;
        const char *near = NULL;
        for (uint32_t i = 0; i < n; i++) {
            asked |= !strcmp(names[i], m.name);
            near = opt_nearer(m.name, near, names[i]);
        }
        if (!asked) {
            ctx_hint(t->ctx, near ? "did you mean '%s'?" : "%s is", near ? near : n ? names[0] : "none");
            ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "measured: '%s' is not asked for", m.name);
        }
        step_of(t, &m, prof_tokens(t), predict_number(t, OPT_SAMPLES, "samples"));
    }
}

void measured_apply(Tool *t, const char *instance, Told *o) {
    Measured m;
    for (const char *at = t->opt.val[OPT_MEASURED]; next(t, &at, &m);)
        if (!strcmp(m.name, instance)) {
            double step = step_of(t, &m, o->tokens, o->samples);
            o->mfu *= o->step_s / step;
            o->step_s = step, o->error = 0, o->error_rows = "", o->measured = true;
        }
}
