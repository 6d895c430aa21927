// SPDX-License-Identifier: Apache-2.0
// cmd_cache.c — otrn cache: what is kept of earlier compilations.
#include "tools/tools.h"

#include <string.h>
#include <time.h>

#include "rt/rt.h"

static void entry_print(void *arg, const char *file, const Artifact *art, uint64_t bytes,
                        int64_t mtime) {
    (void)arg;
    char when[32] = "";
    struct tm tm;
    time_t at = (time_t)mtime;
    if (localtime_r(&at, &tm))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
    printf("%.32s  %s %12llu B  %-6s %s\n", file, when, (unsigned long long)bytes, art->target,
           art->name);
}

int cmd_cache(Tool *t) {
    const char *word = t->words.at[0];
    bool clear = !strcmp(word, "clear");
    if (!clear && strcmp(word, "ls") != 0) {
        ctx_hint(t->ctx, "usage: otrn cache ls|clear");
        ctx_fail(t->ctx, OTRN_USAGE, NO_PLACE, "cache: there is no action '%s'", word);
    }
    const char *dir = rt_cache_dir(t->arena, &t->opt);
    if (!*dir) {
        ctx_hint(t->ctx, "set --cache-dir or HOME");
        ctx_fail(t->ctx, OTRN_IO, NO_PLACE, "there is no cache folder");
    }
    if (clear)
        fprintf(stderr, "removed %u from %s\n", rt_cache_clear(t->ctx, t->arena, dir), dir);
    else
        rt_cache_each(t->ctx, t->arena, dir, entry_print, NULL);
    return 0;
}
