// SPDX-License-Identifier: Apache-2.0
// cmd_cache.c — otrn cache: what is kept of earlier compilations.
//
//   ls       every entry, the last used first, and their sum; --json for scripts (keys are only ever added)
//   why      FILE: is it there, and if not, what differs from the nearest entry; KEY or its begin: what it was made of
//   verify   loads every entry
//   prune    removes what is damaged, of another release, left over or above the limit
//   clear    removes everything
#include "tools/tools.h"

#include <string.h>
#include <time.h>

#include "base/file.h"
#include "rt/rt.h"

#define KEY_SHOWN 12

typedef struct Action {
    const char *name;
    int (*run)(Tool *t, const char *dir);
} Action;

// --- ls --------------------------------------------------------------------------------------------

typedef struct Ls {
    Tool *t;
    uint64_t bytes;
    uint32_t entries;
} Ls;

static const char *size_text(Arena *a, uint64_t bytes) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double v = (double)bytes;
    int u = 0;
    for (; v >= 1000 && u < 4; u++)
        v /= 1000;
    return arena_printf(a, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

static void item_print(void *arg, const RtCacheItem *item) {
    Ls *ls = arg;
    char when[32] = "";
    struct tm tm;
    time_t at = (time_t)item->used;
    if (localtime_r(&at, &tm))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
    if (!ls->entries++)
        printf("%-*s  %-16s  %9s  %-8s  %s\n", KEY_SHOWN, "key", "last used", "size", "target", "program");
    ls->bytes += item->bytes;
    const char *what = *item->module && strcmp(item->module, "main") ? arena_printf(ls->t->arena, "%s: %s", item->name, item->module) : item->name;
    printf("%.*s  %-16s  %9s  %-8s  %s\n", KEY_SHOWN, item->key, when, size_text(ls->t->arena, item->bytes),
           *item->target ? item->target : "-", item->fault ? arena_printf(ls->t->arena, "(%s)", item->fault) : what);
}

static void json_text(const char *name, const char *text, const char *behind) {
    printf("\"%s\": \"", name);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < ' ' || *c == '"' || *c == '\\')
            printf("\\u%04x", *c);
        else
            putchar(*c);
    printf("\"%s", behind);
}

static void item_json(void *arg, const RtCacheItem *item) {
    Ls *ls = arg;
    printf("%s    {", ls->entries++ ? ",\n" : "\n");
    ls->bytes += item->bytes;
    json_text("key", item->key, ", ");
    printf("\"bytes\": %llu, \"last_used\": %lld, ", (unsigned long long)item->bytes, (long long)item->used);
    json_text("target", item->target, ", ");
    json_text("program", item->name, ", ");
    json_text("module", item->module, ", ");
    json_text("release", item->release, ", ");
    json_text("fault", item->fault ? item->fault : "", "}");
}

static int cache_ls(Tool *t, const char *dir) {
    Ls ls = {.t = t};
    uint64_t limit = opt_num(&t->opt, OPT_CACHE_LIMIT) << 20;
    if (opt_on(&t->opt, OPT_JSON)) {
        printf("{\n  ");
        json_text("folder", dir, ",\n");
        printf("  \"limit_bytes\": %llu,\n  \"entries\": [", (unsigned long long)limit);
        rt_cache_each(t->ctx, t->arena, dir, false, item_json, &ls);
        printf("%s],\n  \"total_bytes\": %llu\n}\n", ls.entries ? "\n  " : "", (unsigned long long)ls.bytes);
        return 0;
    }
    rt_cache_each(t->ctx, t->arena, dir, false, item_print, &ls);
    printf("%u %s, %s%s%s in %s\n", ls.entries, ls.entries == 1 ? "entry" : "entries", size_text(t->arena, ls.bytes),
           limit ? " of at most " : "", limit ? size_text(t->arena, limit) : "", dir);
    return 0;
}

// --- the others ------------------------------------------------------------------------------------

static int cache_clear(Tool *t, const char *dir) {
    fprintf(stderr, "removed %u from %s\n", rt_cache_clear(t->ctx, t->arena, dir), dir);
    return 0;
}

static int cache_prune(Tool *t, const char *dir) {
    uint64_t limit = opt_num(&t->opt, OPT_CACHE_LIMIT) << 20;
    fprintf(stderr, "removed %u from %s\n", rt_cache_prune(t->ctx, t->arena, dir, limit), dir);
    return 0;
}

static void item_check(void *arg, const RtCacheItem *item) {
    if (!item->fault)
        return;
    ++*(uint32_t *)arg;
    printf("%s %s\n", item->key, item->fault);
}

static int cache_verify(Tool *t, const char *dir) {
    uint32_t damaged = 0, n = rt_cache_each(t->ctx, t->arena, dir, true, item_check, &damaged);
    printf("%u entries, %u damaged\n", n, damaged);
    return damaged != 0;
}

// --- why -------------------------------------------------------------------------------------------

typedef struct Line { // "what value" or "what HASH value"
    const char *hash, *value;
    size_t hash_bytes, value_bytes;
} Line;

static bool line_find(const char *text, const char *what, size_t n, Line *out) {
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (!strncmp(at, what, n) && (at[n] == ' ' || at[n] == '=')) {
            const char *value = at + n + 1, *end = at + strcspn(at, "\n");
            size_t digits = strspn(value, "0123456789abcdef");
            bool hashed = digits == RT_CACHE_KEY - 1;
            *out = (Line){value, hashed ? value + digits + (value[digits] == ' ') : value, hashed ? digits : 0, 0};
            out->value_bytes = (size_t)(end - out->value);
            return true;
        }
    return false;
}

// How a line of the key's inputs is told when it changed: then and now.
typedef struct WhyRow {
    const char *what, *text; // the text takes both values
} WhyRow;
static const WhyRow why_rows[] = {
    {"program", "the program's text changed (it was %.*s, now %.*s)"},
    {"target", "it was compiled for %.*s, now %.*s"},
    {"name", "it was compiled under the name %.*s, now %.*s, which places in messages refer to"},
    {"arguments", "its arguments were %.*s, now %.*s"},
    {"release", "it was compiled by release %.*s, this is %.*s"},
    {"artifact", "the format of artifacts was %.*s, now %.*s"},
};

static void why_row(const WhyRow *row, const char *now, const char *then) {
    Line a, b;
    if (!line_find(then, row->what, strlen(row->what), &a) || !line_find(now, row->what, strlen(row->what), &b))
        return;
    bool same = a.value_bytes == b.value_bytes && !memcmp(a.value, b.value, a.value_bytes);
    if (same && a.hash_bytes == b.hash_bytes && !memcmp(a.hash, b.hash, a.hash_bytes))
        return;
    printf("  ");
    if (same && !strcmp(row->what, "target"))
        printf("the chip file of %.*s has other values", (int)a.value_bytes, a.value);
    else if (same && !strcmp(row->what, "program"))
        printf("the program's text changed (it has as many bytes as before)");
    else if (same)
        printf("its %s are others", row->what);
    else
        printf(row->text, (int)a.value_bytes, a.value, (int)b.value_bytes, b.value);
    printf("\n");
}

// Options of code that differ: those not named have their defaults.
static void why_options(const char *now, const char *then) {
    for (int i = 0; i < OPT_COUNT; i++) {
        char what[80];
        int n = snprintf(what, sizeof what, "option %s", opt_rows[i].name);
        Line a = {.value = opt_rows[i].dflt}, b = a;
        a.value_bytes = b.value_bytes = strlen(opt_rows[i].dflt);
        line_find(then, what, (size_t)n, &a);
        line_find(now, what, (size_t)n, &b);
        if (a.value_bytes != b.value_bytes || memcmp(a.value, b.value, a.value_bytes))
            printf("  --%s was %.*s, now %.*s\n", opt_rows[i].name, a.value_bytes ? (int)a.value_bytes : 7,
                   a.value_bytes ? a.value : "not set", b.value_bytes ? (int)b.value_bytes : 7, b.value_bytes ? b.value : "not set");
    }
}

static bool is_key(const char *word) {
    size_t n = strspn(word, "0123456789abcdef");
    return n >= 4 && n < RT_CACHE_KEY && !word[n];
}

static int cache_why(Tool *t, const char *dir) {
    if (t->words.n < 2) {
        ctx_hint(t->ctx, "usage: otrn cache why FILE [--target=…], or why KEY");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "cache why: which program?");
    }
    const char *path = t->words.at[1], *found = is_key(path) ? rt_cache_inputs_of(t->ctx, t->arena, dir, path) : NULL;
    if (found) {
        fputs(found, stdout);
        return 0;
    }
    RtCompile in = {.opts = &t->opt, .name = path};
    in.bytes = file_read(t->ctx, t->arena, path, &in.size);
    ChipFile chip;
    chipfile_load(t->ctx, t->arena, t->opt.val[OPT_TARGET], t->opt.val[OPT_CHIPS], &chip);
    const char *inputs = rt_cache_inputs(t->arena, &in, false, &chip), *near = "";
    char key[RT_CACHE_KEY];
    rt_cache_key(inputs, key);
    const char *other = rt_cache_nearest(t->ctx, t->arena, dir, inputs, &near);
    if (other && !strcmp(near, key)) {
        printf("%s is there: %s\n", path, key);
        return 0;
    }
    printf("%s is not there\n", path);
    Line a, b;
    bool related = other && ((line_find(other, "program", 7, &a) && line_find(inputs, "program", 7, &b) && !memcmp(a.hash, b.hash, b.hash_bytes)) ||
                             (line_find(other, "name", 4, &a) && line_find(inputs, "name", 4, &b) && !memcmp(a.hash, b.hash, b.hash_bytes)));
    if (!related) {
        printf("no entry is of this program or of this name\n");
        return 1;
    }
    printf("nearest is %.*s:\n", KEY_SHOWN, near);
    for (size_t i = 0; i < sizeof why_rows / sizeof *why_rows; i++)
        why_row(&why_rows[i], inputs, other);
    why_options(inputs, other);
    return 1;
}

int cmd_cache(Tool *t) {
    static const Action actions[] = {{"ls", cache_ls},
                                     {"why", cache_why},
                                     {"verify", cache_verify},
                                     {"prune", cache_prune},
                                     {"clear", cache_clear}};
    const char *dir = rt_cache_dir(t->arena, &t->opt);
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(t->words.at[0], actions[i].name))
            continue;
        if (!*dir) {
            ctx_hint(t->ctx, "set --cache-dir or HOME");
            ctx_fail(t->ctx, OTRN_IO, NO_PLACE, "there is no cache folder");
        }
        return actions[i].run(t, dir);
    }
    ctx_hint(t->ctx, "usage: otrn cache ls|why FILE|verify|prune|clear");
    ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "cache: there is no action '%s'", t->words.at[0]);
}
