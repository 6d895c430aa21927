// SPDX-License-Identifier: Apache-2.0
// opt.c — checks and keeps option values; the rows are in opt.h.
//
// A value is checked once, where it comes in, so that opt_num and opt_on cannot fail later. Values are
// borrowed: they live as long as argv, the environment or the caller's strings do.
#define _GNU_SOURCE // environ
#include "base/opt.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const OptRow opt_rows[OPT_COUNT] = {
#define X(e, name, env, dflt, kind, values, cmds, help)                                            \
    [OPT_##e] = {name, env, dflt, kind, values, cmds, help},
    OPT_ROWS(X)
#undef X
};

// Whole number up to OPT_NUM_MAX; false when `s` is anything else.
static bool num_parse(const char *s, uint64_t *out) {
    uint64_t v = 0;
    if (!*s)
        return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9')
            return false;
        v = v * 10 + (uint64_t)(*s - '0');
        if (v > OPT_NUM_MAX)
            return false;
    }
    *out = v;
    return true;
}

// The canonical text of a B value, or NULL.
static const char *bool_parse(const char *s) {
    if (!strcmp(s, "on") || !strcmp(s, "1") || !strcmp(s, "true"))
        return "on";
    if (!strcmp(s, "off") || !strcmp(s, "0") || !strcmp(s, "false"))
        return "off";
    return NULL;
}

// Is `s` one of the words of "a|b|c"?
static bool one_of(const char *words, const char *s) {
    size_t n = strlen(s);
    for (const char *w = words; *w;) {
        size_t len = strcspn(w, "|");
        if (len == n && !memcmp(w, s, n))
            return true;
        w += len + (w[len] == '|');
    }
    return false;
}

// `variable`: the one of the environment that has the value; NULL: it comes from elsewhere.
static void value_set(Ctx *ctx, Options *o, int id, const char *value, const char *from, const char *variable) {
    const OptRow *row = &opt_rows[id];
    const char *dash = variable ? "" : row->name[1] ? "--" : "-", *name = variable ? variable : row->name;
    uint64_t num;
    switch (row->kind) {
    case 'N':
        if (!num_parse(value, &num))
            ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "%s%s: '%s' is not a whole number from 0 to %u", dash,
                     name, value, OPT_NUM_MAX);
        break;
    case 'B':
        if (!bool_parse(value))
            ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "%s%s: '%s' is neither on nor off", dash, name, value);
        value = bool_parse(value);
        break;
    case 'E':
        if (!one_of(row->values, value))
            ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "%s%s: '%s' is not one of %s", dash, name, value,
                     row->values);
        break;
    default:
        assert(row->kind == 'S' || row->kind == 'H');
    }
    o->val[id] = value;
    o->from[id] = from;
}

// What stands behind "OTRN_" or "OPENTRN_"; NULL when the variable is not one of ours.
static const char *env_own(const char *s) {
    return !strncmp(s, "OTRN_", 5) ? s + 5 : !strncmp(s, "OPENTRN_", 8) ? s + 8 : NULL;
}

#define VARIABLE_BYTES 64
// The next name of "A|B|C"; false: there is none.
static bool env_next(const char **at, char name[VARIABLE_BYTES]) {
    size_t n = strcspn(*at, "|");
    assert(n < VARIABLE_BYTES);
    memcpy(name, *at, n);
    name[n] = 0;
    *at += n + ((*at)[n] == '|');
    return n > 0;
}

// A variable that is nearly one of the table's was meant to be it, and would be ignored without a word.
// Others that begin like ours may belong to somebody else.
static void env_check(Ctx *ctx, const char *variable) {
    char name[48];
    size_t n = strcspn(variable, "=");
    if (!env_own(variable) || n >= sizeof name || !variable[n] || !variable[n + 1])
        return;
    memcpy(name, variable, n);
    name[n] = 0;
    char one[VARIABLE_BYTES], meant[VARIABLE_BYTES] = "";
    for (int id = 0; id < OPT_COUNT; id++) {
        if (one_of(opt_rows[id].env, name))
            return;
        for (const char *at = opt_rows[id].env; env_next(&at, one);) {
            const char *own = env_own(one);
            if (own && opt_nearer(env_own(name), *meant ? env_own(meant) : NULL, own) == own)
                memcpy(meant, one, sizeof one);
        }
    }
    if (!*meant)
        return;
    ctx_hint(ctx, "did you mean %s? `otrn info options` lists all", meant);
    ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "there is no environment variable %s", name);
}

void opt_init(Ctx *ctx, Options *o) {
    for (char **e = environ; e && *e; e++)
        env_check(ctx, *e);
    for (int id = 0; id < OPT_COUNT; id++)
        value_set(ctx, o, id, opt_rows[id].dflt, "default", NULL);
    for (int id = 0; id < OPT_COUNT; id++) {
        char name[VARIABLE_BYTES];
        const char *v = NULL;
        for (const char *at = opt_rows[id].env; (!v || !*v) && env_next(&at, name);)
            v = getenv(name);
        if (v && *v) // an empty variable means "not set"
            value_set(ctx, o, id, v, "environment", name);
    }
}

int opt_find(const char *name, size_t n) {
    for (int id = 0; id < OPT_COUNT; id++)
        if (strlen(opt_rows[id].name) == n && !memcmp(opt_rows[id].name, name, n))
            return id;
    return -1;
}

void opt_set(Ctx *ctx, Options *o, const char *name, const char *value, const char *from) {
    int id = opt_find(name, strlen(name));
    if (id < 0) {
        const char *near = NULL;
        for (int i = 0; i < OPT_COUNT; i++)
            near = opt_nearer(name, near, opt_rows[i].name);
        if (near)
            ctx_hint(ctx, "did you mean '%s'?", near);
        else
            ctx_hint(ctx, "`otrn info options` lists them");
        ctx_fail(ctx, OTRN_USAGE, NO_PLACE, "there is no option '%s'", name);
    }
    value_set(ctx, o, id, value, from, NULL);
}

uint64_t opt_num(const Options *o, OptId id) {
    uint64_t v = 0;
    assert(opt_rows[id].kind == 'N');
    bool ok = num_parse(o->val[id], &v);
    assert(ok);
    (void)ok;
    return v;
}

bool opt_on(const Options *o, OptId id) { return !strcmp(o->val[id], "on"); }

// Edit distance (insert, delete, change, swap of neighbours each cost one), by rows.
#define WORD_MAX 31
static int word_distance(const char *a, const char *b) {
    int row[3][WORD_MAX + 1];
    size_t na = strlen(a), nb = strlen(b);
    if (na > WORD_MAX || nb > WORD_MAX)
        return WORD_MAX;
    for (size_t j = 0; j <= nb; j++)
        row[0][j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        int *now = row[i % 3], *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            int best = up[j - 1] + (a[i - 1] != b[j - 1]);
            if (best > up[j] + 1)
                best = up[j] + 1;
            if (best > now[j - 1] + 1)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                best > up2[j - 2] + 1)
                best = up2[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[na % 3][nb];
}

const char *opt_nearer(const char *typed, const char *best, const char *candidate) {
    int d = word_distance(typed, candidate);
    int limit = strlen(candidate) < 4 ? 1 : (int)strlen(candidate) / 3 + 1;
    if (d > limit || d >= (int)strlen(candidate))
        return best;
    return !best || d < word_distance(typed, best) ? candidate : best;
}
