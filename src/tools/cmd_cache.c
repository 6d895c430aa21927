// SPDX-License-Identifier: Apache-2.0
// cmd_cache.c — otrn cache: what is kept of earlier compilations.
//
//   ls       every entry
//   why      FILE: is it there, and if not, what differs from the nearest entry; KEY: what it was made of
//   verify   loads every entry
//   prune    removes what is damaged, of another release, left over or above the limit
//   clear    removes everything
#include "tools/tools.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "rt/rt.h"

typedef struct Action {
    const char *name;
    int (*run)(Tool *t, const char *dir);
} Action;

static void entry_print(void *arg, const char *file, const Artifact *art, uint64_t bytes,
                        int64_t mtime) {
    (void)arg;
    char when[32] = "";
    struct tm tm;
    time_t at = (time_t)mtime;
    if (localtime_r(&at, &tm))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
    printf("%.32s  %s %12llu B  %-6s %s\n", file, when, (unsigned long long)bytes,
           art ? art->target : "-", art ? art->name : "(damaged)");
}

static int cache_ls(Tool *t, const char *dir) {
    rt_cache_each(t->ctx, t->arena, dir, entry_print, NULL);
    return 0;
}

static int cache_clear(Tool *t, const char *dir) {
    fprintf(stderr, "removed %u from %s\n", rt_cache_clear(t->ctx, t->arena, dir), dir);
    return 0;
}

static int cache_prune(Tool *t, const char *dir) {
    uint64_t limit = opt_num(&t->opt, OPT_CACHE_LIMIT) << 20;
    fprintf(stderr, "removed %u from %s\n", rt_cache_prune(t->ctx, t->arena, dir, limit), dir);
    return 0;
}

static void entry_check(void *arg, const char *file, const Artifact *art, uint64_t bytes,
                        int64_t mtime) {
    (void)bytes, (void)mtime;
    if (art)
        return;
    ++*(uint32_t *)arg;
    printf("%.32s is damaged\n", file);
}

static int cache_verify(Tool *t, const char *dir) {
    uint32_t damaged = 0, n = rt_cache_each(t->ctx, t->arena, dir, entry_check, &damaged);
    printf("%u entries, %u damaged\n", n, damaged);
    return damaged != 0;
}

// For "%.*s": behind the word of `n` characters of a line.
#define VALUE(line, n, word) (n) > (word) + 1 ? (int)((n) - (word) - 1) : 7, (n) > (word) + 1 ? (line) + (word) + 1 : "nothing"

// Lines "what value" of `now` that are others in `then`.
static void print_changes(const char *now, const char *then) {
    for (const char *line = now; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t n = strcspn(line, "\n"), word = strcspn(line, " ");
        const char *old = then;
        while (*old && strncmp(old, line, word + 1))
            old += strcspn(old, "\n"), old += *old == '\n';
        size_t m = strcspn(old, "\n");
        if (m != n || memcmp(old, line, n))
            printf("  %.*s: %.*s here, %.*s there\n", (int)word, line, VALUE(line, n, word), VALUE(old, m, word));
    }
}

static bool print_entry(Tool *t, const char *dir, const char *key) {
    struct stat st;
    const char *path = arena_printf(t->arena, "%s/%s" RT_CACHE_WHY, dir, key);
    if (strlen(key) != 32 || stat(path, &st))
        return false;
    size_t size;
    fputs((const char *)file_read(t->ctx, t->arena, path, &size), stdout);
    return true;
}

static int cache_why(Tool *t, const char *dir) {
    if (t->words.n < 2) {
        ctx_hint(t->ctx, "usage: otrn cache why FILE [--target=…], or why KEY");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "cache why: which program?");
    }
    const char *path = t->words.at[1];
    if (print_entry(t, dir, path))
        return 0;
    RtCompile in = {.opts = &t->opt, .name = path};
    in.bytes = tool_read(t, path, &in.size);
    ChipFile chip;
    chipfile_load(t->ctx, t->arena, t->opt.val[OPT_TARGET], t->opt.val[OPT_CHIPS], &chip);
    const char *inputs = rt_cache_inputs(t->arena, &in, false, &chip), *near = "";
    char key[33];
    rt_cache_key(inputs, key);
    const char *other = rt_cache_nearest(t->ctx, t->arena, dir, inputs, &near);
    if (other && !strcmp(near, key)) {
        printf("%s is there: %s\n", path, key);
        return 0;
    }
    printf("%s is not there\n", path);
    if (other) {
        printf("nearest is %s, which differs in\n", near);
        print_changes(inputs, other);
    }
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
